(* The removal lemma where scores move either way: forms (a), add-remove, and (c), replace-one. *)

Require Import Reals Lra Psatz List.
From Coquelicot Require Import Coquelicot.
From fastdp Require Import real_functions removal_game.
Open Scope R_scope.

(* ---- (a), one record: W(y) = D y^(-1/k) from 1 on, and 1 - y + y W(1/y) below ---- *)
Section General.
Variable k : R.
Hypothesis k_pos : 0 < k.
Let U := 1 + k.
Let D := k / (k + 2).
Notation phi := (falling k).

Definition W (y : R) : R := if Rle_dec 1 y then D * phi y else 1 - y + D * y * phi (/ y).

Lemma U_pos : 0 < / U. Proof. apply Rinv_0_lt_compat. unfold U; lra. Qed.
Lemma D_pos : 0 < D. Proof. apply Rdiv_lt_0_compat; lra. Qed.

Lemma W_above : forall y, 1 <= y -> W y = D * phi y.
Proof. intros; unfold W. destruct (Rle_dec 1 y); lra. Qed.

Lemma W_below : forall y, 0 < y -> y <= 1 -> W y = 1 - y + D * y * phi (/ y).
Proof.
  intros; unfold W. destruct (Rle_dec 1 y); [| reflexivity].
  replace y with 1 by lra. rewrite Rinv_1, falling_1 by lra. lra.
Qed.

Lemma W_turn : forall y, 0 < y -> W y = 1 - y + y * W (/ y).
Proof.
  intros y Hy. destruct (Rle_dec 1 y).
  - assert (/ y <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    assert (0 < / y) by (apply Rinv_0_lt_compat; lra).
    rewrite W_above, (W_below (/ y)) by lra. rewrite Rinv_inv by lra. field_simplify; lra.
  - assert (1 <= / y) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    rewrite W_below, (W_above (/ y)) by lra. ring.
Qed.

Lemma W_line : forall y, 0 < y -> D * (1 - (y - 1) / k) <= W y.   (* the tangent at 1 *)
Proof.
  intros y Hy. destruct (Rle_dec 1 y).
  - rewrite W_above by lra. apply Rmult_le_compat_l; [left; apply D_pos |]. apply falling_above_tangent; lra.
  - rewrite W_below by lra.
    assert (1 <= / y) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    assert (0 < / y) by (apply Rinv_0_lt_compat; lra).
    pose proof (falling_above_tangent k k_pos (/ y) H0) as T. apply (Rmult_le_compat_l (D * y)) in T.
    2: apply Rmult_le_pos; [left; apply D_pos | lra].
    eapply Rle_trans; [| apply Rplus_le_compat_l; apply T].
    unfold D. right. field. repeat split; lra.
Qed.

Lemma W_stop : forall y, 0 < y -> pos (1 - y) <= W y.
Proof.
  intros y Hy. apply pos_least.
  - destruct (Rle_dec 1 y).
    + rewrite W_above by lra. pose proof (Rmult_lt_0_compat _ _ D_pos (falling_pos k y)). lra.
    + rewrite W_below by lra.
      pose proof (Rmult_lt_0_compat _ _ (Rmult_lt_0_compat _ _ D_pos Hy) (falling_pos k (/ y))). lra.
  - destruct (Rle_dec 1 y).
    + rewrite W_above by lra. left. apply Rmult_lt_0_compat; [apply D_pos | apply falling_pos].
    + rewrite W_below by lra.
      pose proof (Rmult_lt_0_compat _ _ (Rmult_lt_0_compat _ _ D_pos Hy) (falling_pos k (/ y))). lra.
Qed.

(* One round, where the next state is at least 1. *)
Lemma round_up : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y ->
  1 <= (p1 * U + p2 * / U + q) * y ->
  p1 * pos (1 - U * y) + p2 * pos (1 - / U * y) + q * W y <= W ((p1 * U + p2 * / U + q) * y).
Proof.
  intros p1 p2 q y H1 H2 H3 Hs Hy Hf. set (f := p1 * U + p2 * / U + q) in *.
  pose proof U_pos as HU. assert (HU1 : / U < 1) by (unfold U; rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
  assert (UU : U * / U = 1) by (apply Rinv_r; unfold U; lra).
  assert (HfU : f <= U) by (unfold f; pose proof (Rmult_le_compat_l p2 (/ U) U H2 ltac:(unfold U in *; lra)); pose proof (Rmult_le_compat_l q 1 U H3 ltac:(unfold U; lra)); assert (U = p1 * U + p2 * U + q * U) by (rewrite <- Rmult_plus_distr_r, <- Rmult_plus_distr_r, Hs; ring); lra).
  assert (HUy : 1 <= U * y) by (pose proof (Rmult_le_compat_r y f U); lra).
  assert (P1 : pos (1 - U * y) = 0) by (unfold pos; apply Rmax_left; lra). rewrite P1.
  destruct (Rle_dec 1 y) as [Hy1 | Hy1].
  - rewrite (W_above (f * y)) by lra. rewrite (W_above y) by lra.
    assert (Hfp : 0 < f) by (apply Rmult_lt_reg_r with y; lra).
    rewrite falling_mult by lra.
    assert (T : 1 - (f - 1) / k <= phi f) by (apply falling_above_tangent; lra).
    assert (P2 : pos (1 - / U * y) <= (k + 2) / U * (D * phi y)).
    { apply pos_least.
      - pose proof (falling_above_tangent k k_pos y Hy) as T2.
        apply (Rmult_le_compat_l (k / U)) in T2; [| apply Rmult_le_pos; lra].
        replace ((k + 2) / U * (D * phi y)) with (k / U * phi y) by (unfold D; field; unfold U; lra).
        eapply Rle_trans; [| apply T2]. right. unfold U. field. lra.
      - apply Rmult_le_pos; [apply Rmult_le_pos; lra |]. left; apply Rmult_lt_0_compat; [apply D_pos | apply falling_pos]. }
    assert (Dp : 0 < D * phi y) by (apply Rmult_lt_0_compat; [apply D_pos | apply falling_pos]).
    apply (Rmult_le_compat_l p2) in P2; [| lra].
    apply (Rmult_le_compat_l (D * phi y)) in T; [| lra].
    eapply Rle_trans; [apply Rplus_le_compat_r; apply Rplus_le_compat_l; apply P2 |].
    replace (D * (phi f * phi y)) with (D * phi y * phi f) by ring.
    eapply Rle_trans; [| apply T]. right.
    unfold f. replace q with (1 - p1 - p2) by lra. unfold U. field. lra.
  - assert (Hy2 : y < 1) by lra. clear Hy1.
    eapply Rle_trans; [| apply W_line; lra].
    assert (Huy : / U * y < 1) by (pose proof (Rmult_lt_compat_l (/ U) y 1); lra).
    assert (P2 : pos (1 - / U * y) = 1 - / U * y) by (unfold pos; apply Rmax_right; lra). rewrite P2.
    (* W y <= 1 - y + D y k / (U - y) *)
    assert (B : W y <= 1 - y + D * y * (k / (U - y))).
    { rewrite W_below by lra. apply Rplus_le_compat_l. apply Rmult_le_compat_l; [apply Rmult_le_pos; [left; apply D_pos | lra] |].
      pose proof (falling_above_tangent k k_pos y Hy) as T.
      pose proof (falling_inverse k k_pos y Hy) as I.
      assert (0 < 1 - (y - 1) / k) by (replace (1 - (y - 1) / k) with ((U - y) / k) by (unfold U; field; lra); apply Rdiv_lt_0_compat; unfold U; lra).
      replace (k / (U - y)) with (/ (1 - (y - 1) / k)) by (unfold U; field; repeat split; lra).
      apply Rmult_le_reg_r with (1 - (y - 1) / k); auto. rewrite Rinv_l by lra.
      eapply Rle_trans; [| right; apply I]. apply Rmult_le_compat_l; [left; apply falling_pos | lra]. }
    apply (Rmult_le_compat_l q) in B; [| lra].
    eapply Rle_trans; [apply Rplus_le_compat_l; apply B |]. clear B.
    destruct (Req_dec (U * y) 1) as [E | E].
    + (* then the first mass is everything *)
      assert (f = U) by (apply Rle_antisym; auto; apply Rmult_le_reg_r with y; lra).
      assert (p2 * (U - / U) + q * (U - 1) = 0) by (unfold f in H; replace p1 with (1 - p2 - q) in H by lra; lra).
      assert (0 <= p2 * (U - / U)) by (apply Rmult_le_pos; unfold U in *; lra).
      assert (0 <= q * (U - 1)) by (apply Rmult_le_pos; unfold U in *; lra).
      assert (p2 = 0) by (apply Rmult_eq_reg_r with (U - / U); unfold U in *; lra).
      assert (q = 0) by (apply Rmult_eq_reg_r with (U - 1); unfold U in *; lra).
      subst p2 q. rewrite H, E. unfold U. replace (1 - (1 - 1) / k) with 1 by (field; lra). pose proof D_pos; lra.
    + set (m := U * (1 - y) / ((k + 2) * (U * y - 1))).
      assert (Huy1 : 0 < U * y - 1) by lra.
      assert (Hm : 0 <= m) by (unfold m; apply Rmult_le_pos; [apply Rmult_le_pos; unfold U; lra | left; apply Rinv_0_lt_compat; apply Rmult_lt_0_compat; lra]).
      assert (Hmf : 0 <= m * (f * y - 1)) by (apply Rmult_le_pos; lra).
      (* corner of p2 *)
      assert (C2 : 0 <= (U - / U * y) / (k + 2) - (1 - / U * y) + m * (1 - / U * y)).
      { replace ((U - / U * y) / (k + 2) - (1 - / U * y) + m * (1 - / U * y)) with ((1 - y) ^ 2 / (U * y - 1)).
        - apply Rmult_le_pos; [apply pow2_ge_0 | left; apply Rinv_0_lt_compat; lra].
        - unfold m, U in *. field. repeat split; lra. }
      assert (C3 : 0 <= (U - y) / (k + 2) - (1 - y + D * y * (k / (U - y))) + m * (1 - y)).
      { replace ((U - y) / (k + 2) - (1 - y + D * y * (k / (U - y))) + m * (1 - y)) with (U * (1 - y) ^ 3 * (1 + U) / ((k + 2) * (U * y - 1) * (U - y))).
        - apply Rmult_le_pos; [| left; apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; unfold U in *; lra].
          repeat apply Rmult_le_pos; try (unfold U; lra). 
        - unfold m, D, U in *. field. repeat split; lra. }
      apply (Rmult_le_compat_l p2) in C2; [| lra]. apply (Rmult_le_compat_l q) in C3; [| lra].
      assert (C1 : D * (1 - (f * y - 1) / k) - (p1 * 0 + p2 * (1 - / U * y) + q * (1 - y + D * y * (k / (U - y)))) =
        m * (f * y - 1) + p2 * ((U - / U * y) / (k + 2) - (1 - / U * y) + m * (1 - / U * y)) + q * ((U - y) / (k + 2) - (1 - y + D * y * (k / (U - y))) + m * (1 - y))).
      { unfold m, f, D. replace p1 with (1 - p2 - q) by lra. unfold U in *. field. repeat split; lra. }
      lra.
Qed.
End General.

Section Two.
Variable eta : R.
Hypothesis eta_pos : 0 < eta.
Let U := exp eta.
Let k := U - 1.
Notation phi := (falling k).
Let D := k / (k + 2).
Let m := D * phi U.
Let c := (k + 2 * m) / (k + 2).

Lemma k_pos : 0 < k. Proof. unfold k, U. pose proof (exp_ineq1 eta). lra. Qed.
Lemma U_1 : 1 < U. Proof. pose proof k_pos; unfold k in *; lra. Qed.
Lemma ln_U : ln U = eta. Proof. apply ln_exp. Qed.
Lemma phi_U : 0 < phi U < 1.
Proof.
  split; [apply falling_pos |]. unfold falling. rewrite <- exp_0. apply exp_increasing. rewrite ln_U.
  pose proof k_pos. replace (- eta / k) with (- (eta / k)) by (field; lra). pose proof (Rdiv_lt_0_compat eta k). lra.
Qed.
Lemma D_in : 0 < D < 1.
Proof. pose proof k_pos. unfold D. split; [apply Rdiv_lt_0_compat; lra |]. apply Rmult_lt_reg_r with (k + 2); [lra |]. field_simplify; lra. Qed.
Lemma m_in : 0 < m < D.
Proof. pose proof phi_U. pose proof D_in. unfold m. split; [apply Rmult_lt_0_compat; lra |]. pose proof (Rmult_lt_compat_l D (phi U) 1). lra. Qed.
Lemma c_above : D <= c.
Proof. pose proof k_pos. pose proof m_in. unfold c, D. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra | lra]. Qed.
Lemma c_m : c - m = k * (1 - m) / (k + 2).
Proof. unfold c. pose proof k_pos. field. lra. Qed.
Lemma c_m_pos : 0 < c - m.
Proof. rewrite c_m. pose proof k_pos; pose proof m_in; pose proof D_in. apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra | lra]. Qed.
Lemma c_convex : m <= U * (c - m).
Proof.
  rewrite c_m. pose proof k_pos. pose proof phi_U. pose proof D_in. pose proof m_in.
  apply Rmult_le_reg_r with (k + 2); [lra |]. replace (U * (k * (1 - m) / (k + 2)) * (k + 2)) with (U * k * (1 - m)) by (field; lra).
  replace U with (1 + k) by (unfold k; lra).
  assert (m * (k + 2) <= k) by (unfold m, D; replace (k / (k + 2) * phi U * (k + 2)) with (k * phi U) by (field; lra); pose proof (Rmult_le_compat_l k (phi U) 1); lra).
  (* m <= k/(k+2): (1+k) k (1-m) - m (k+2) >= (1+k) k 2/(k+2) - k >= 0 *)
  assert (2 <= (1 - m) * (k + 2)) by lra.
  assert (2 * k * (1 + k) <= (1 + k) * k * (1 - m) * (k + 2)).
  { replace ((1 + k) * k * (1 - m) * (k + 2)) with (k * (1 + k) * ((1 - m) * (k + 2))) by ring.
    replace (2 * k * (1 + k)) with (k * (1 + k) * 2) by ring. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]. }
  apply Rle_trans with k; [lra |]. apply Rmult_le_reg_r with (k + 2); [lra |].
  apply Rle_trans with (2 * k * (1 + k)); [| lra]. pose proof (Rmult_le_pos k k). lra.
Qed.

(* W of one record, and its lines. *)
Notation W1 := (W k).

Lemma W1_lines : forall x, 0 < x -> exists slope, forall v, 0 < v -> W1 x + slope * (v - x) <= W1 v.
Proof.
  pose proof k_pos as K. pose proof (D_pos k K) as Dp.
  (* above 1 *)
  assert (A : forall x, 1 <= x -> exists slope, forall v, 0 < v -> W1 x + slope * (v - x) <= W1 v).
  { intros x Hx. assert (px : 0 < phi x) by apply falling_pos.
    exists (- (D * phi x / (k * x))). intros v Hv. rewrite (W_above k x Hx). fold D.
    assert (T : phi x * (1 - (v / x - 1) / k) <= phi v).
    { replace v with (x * (v / x)) at 2 by (field; lra). rewrite falling_mult; auto; try lra; [| apply Rdiv_lt_0_compat; lra].
      apply Rmult_le_compat_l; [lra |]. apply falling_above_tangent; auto. apply Rdiv_lt_0_compat; lra. }
    apply (Rmult_le_compat_l D) in T; [| unfold D; lra].
    replace (D * phi x + - (D * phi x / (k * x)) * (v - x)) with (D * (phi x * (1 - (v / x - 1) / k))) by (field; lra).
    destruct (Rle_dec 1 v) as [H1 | H1]; [rewrite W_above by lra; exact T |].
    (* left of 1: below the tangent at 1, whose slope is less *)
    assert (T1 : phi x * (1 - (1 / x - 1) / k) <= 1).
    { pose proof (falling_above_tangent k K (1 / x) ltac:(apply Rdiv_lt_0_compat; lra)) as T1.
      apply (Rmult_le_compat_l (phi x)) in T1; [| lra]. rewrite <- falling_mult in T1; try lra; [| apply Rdiv_lt_0_compat; lra].
      replace (x * (1 / x)) with 1 in T1 by (field; lra). rewrite falling_1 in T1 by lra. exact T1. }
    assert (px1 : phi x / x <= 1).
    { assert (phi x <= 1) by (unfold falling; rewrite <- exp_0; assert (- ln x / k <= 0);
        [replace (- ln x / k) with (- (ln x * / k)) by (field; lra); assert (0 <= ln x) by (rewrite <- ln_1; destruct Hx as [Hx | <-]; [left; apply ln_increasing; lra | lra]); pose proof (Rmult_le_pos (ln x) (/ k) H ltac:(left; apply Rinv_0_lt_compat; lra)); lra
        | destruct H as [H | ->]; [left; apply exp_increasing; auto | lra]]).
      apply Rmult_le_reg_r with x; [lra |]. replace (phi x / x * x) with (phi x) by (field; lra). lra. }
    eapply Rle_trans; [| apply W_line; auto]. fold D. apply Rmult_le_compat_l; [unfold D; lra |].
    replace (phi x * (1 - (v / x - 1) / k)) with (phi x * (1 - (1 / x - 1) / k) + phi x / x * ((1 - v) / k)) by (field; lra).
    replace (1 - (v - 1) / k) with (1 + 1 * ((1 - v) / k)) by (field; lra).
    apply Rplus_le_compat; [exact T1 |]. apply Rmult_le_compat_r; [| exact px1]. apply Rmult_le_pos; [lra |]. left; apply Rinv_0_lt_compat; lra. }
  intros x Hx. destruct (Rle_dec 1 x) as [H | H]; [apply A; auto |].
  destruct (A (/ x)) as [s Hs]; [rewrite <- Rinv_1; apply Rinv_le_contravar; lra |].
  exists (-1 + (W1 (/ x) - s * / x)). intros v Hv.
  rewrite (W_turn k K x Hx), (W_turn k K v Hv).
  pose proof (Hs (/ v) (Rinv_0_lt_compat _ Hv)) as T. apply (Rmult_le_compat_l v) in T; [| lra].
  eapply Rle_trans; [| apply Rplus_le_compat_l; apply T]. right. field. lra.
Qed.

(* ---- two records ---- *)
Definition W2 (y : R) : R := if Rle_dec 1 y then phi y * (c + m / k * ln y) else 1 - y + y * (phi (/ y) * (c + m / k * ln (/ y))).

Lemma W2_above : forall y, 1 <= y -> W2 y = phi y * (c + m / k * ln y).
Proof. intros; unfold W2. destruct (Rle_dec 1 y); lra. Qed.

Lemma W2_turn : forall y, 0 < y -> W2 y = 1 - y + y * W2 (/ y).
Proof.
  intros y Hy. pose proof k_pos as K. unfold W2 at 1. destruct (Rle_dec 1 y) as [H | H].
  - destruct (Req_dec y 1) as [-> | N].
    + rewrite Rinv_1. rewrite W2_above by lra. ring.
    + assert (/ y < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
      unfold W2. destruct (Rle_dec 1 (/ y)); [lra |]. rewrite Rinv_inv. field. lra.
  - assert (1 <= / y) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). rewrite W2_above by auto. reflexivity.
Qed.

(* W2 beyond 1 lies above its tangent at y, between y and any v >= 1. *)
Lemma W2_tangent : forall y f, 1 <= y -> 0 < f -> 1 <= f * y ->
  phi y * ((c + m / k * ln y) - (f - 1) * (c + m / k * ln y - m) / k) <= W2 (f * y).
Proof.
  intros y f Hy Hf Hv. pose proof k_pos as K. pose proof m_in as M. pose proof c_m_pos as CM. pose proof c_convex as CC. pose proof U_1 as U1.
  rewrite W2_above by lra. rewrite falling_mult by lra. rewrite ln_mult by lra.
  replace (phi f * phi y * (c + m / k * (ln f + ln y))) with (phi y * (phi f * (c + m / k * ln y + m / k * ln f))) by ring.
  apply Rmult_le_compat_l; [left; apply falling_pos |].
  set (x := ln f / k). assert (Ef : f = exp (k * x)) by (unfold x; replace (k * (ln f / k)) with (ln f) by (field; lra); rewrite exp_ln; lra).
  assert (Ep : phi f = exp (- x)) by (unfold falling, x; f_equal; field; lra).
  replace (m / k * ln f) with (m * x) by (unfold x; field; lra). rewrite Ep. rewrite Ef at 1.
  destruct (Rle_dec 0 x) as [Hx | Hx].
  - set (a := c + m / k * ln y).
    assert (Ha : m <= U * (a - m)).
    { apply Rle_trans with (1 := CC). apply Rmult_le_compat_l; [lra |]. unfold a. pose proof (ln_pos y Hy). pose proof (Rmult_le_pos (m / k) (ln y) ltac:(apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]) H). lra. }
    pose proof (curve_up U x ltac:(lra) Hx) as F.
    (* the coefficient of a - m *)
    assert (E1 : 1 - x <= exp (- x)) by (pose proof (exp_above_line (- x)); lra).
    assert (E2 : 1 + k * x <= exp (k * x)) by apply exp_above_line.
    assert (C1 : 0 <= exp (- x) - 1 + (exp (k * x) - 1) / k).
    { assert (x <= (exp (k * x) - 1) / k) by (apply Rmult_le_reg_r with k; auto; replace ((exp (k * x) - 1) / k * k) with (exp (k * x) - 1) by (field; lra); lra). lra. }
    assert (C2 : U * (exp (- x) * (1 + x) - 1) + (exp (- x) - 1 + (exp (k * x) - 1) / k) >= 0).
    { apply Rle_ge. apply Rmult_le_reg_r with (k * exp x); [apply Rmult_lt_0_compat; [lra | apply exp_pos] |]. rewrite Rmult_0_l.
      replace ((U * (exp (- x) * (1 + x) - 1) + (exp (- x) - 1 + (exp (k * x) - 1) / k)) * (k * exp x)) with
        (U * k * (exp (- x) * exp x * (1 + x) - exp x) + k * (exp (- x) * exp x - exp x) + (exp (k * x) * exp x - exp x)) by (field; lra).
      rewrite <- !exp_plus. replace (- x + x) with 0 by lra. rewrite exp_0. replace (k * x + x) with (U * x) by (unfold k; ring).
      eapply Rle_trans; [apply F |]. right. unfold k. ring. }
    assert (G : 0 <= (a - m) * (U * (exp (- x) * (1 + x) - 1) + (exp (- x) - 1 + (exp (k * x) - 1) / k))).
    { apply Rmult_le_pos; [| lra]. apply Rmult_le_reg_r with U; lra. }
    assert (E3 : exp (- x) * (1 + x) <= 1).
    { replace 1 with (exp (- x) * exp x) at 2 by (rewrite <- exp_plus; replace (- x + x) with 0 by lra; apply exp_0).
      apply Rmult_le_compat_l; [left; apply exp_pos | apply exp_above_line]. }
    pose proof (Rmult_le_pos (U * (a - m) - m) (1 - exp (- x) * (1 + x)) ltac:(lra) ltac:(lra)) as G2.
    assert (I : exp (- x) * (a + m * x) - (a - (exp (k * x) - 1) * (a - m) / k) =
      (a - m) * (U * (exp (- x) * (1 + x) - 1) + (exp (- x) - 1 + (exp (k * x) - 1) / k)) + (U * (a - m) - m) * (1 - exp (- x) * (1 + x))).
    { field. lra. }
    lra.
  - assert (Hw : 0 <= - x) by lra.
    set (b := c + m / k * ln (f * y)).
    assert (Hb : m <= U * (b - m)).
    { apply Rle_trans with (1 := CC). apply Rmult_le_compat_l; [lra |]. unfold b. pose proof (ln_pos (f * y) Hv). pose proof (Rmult_le_pos (m / k) (ln (f * y)) ltac:(apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]) H). lra. }
    assert (Eb : c + m / k * ln y = b - m * x).
    { unfold b, x. rewrite ln_mult by lra. field. lra. }
    rewrite Eb. replace (b - m * x + m * x) with b by lra.
    pose proof (curve_down U (- x) ltac:(lra) Hw) as F. rewrite Ropp_involutive in F.
    replace (- (U * - x)) with (U * x) in F by ring.
    assert (E1 : 1 - x <= exp (- x)) by (pose proof (exp_above_line (- x)); lra).
    assert (E2 : 1 + k * x <= exp (k * x)) by apply exp_above_line.
    assert (C1 : 0 <= exp (- x) - 1 + (exp (k * x) - 1) / k).
    { assert (x <= (exp (k * x) - 1) / k) by (apply Rmult_le_reg_r with k; auto; replace ((exp (k * x) - 1) / k * k) with (exp (k * x) - 1) by (field; lra); lra). lra. }
    (* at the least b *)
    assert (C2 : 0 <= (1 + / U) * (exp (- x) - 1) + x + (exp (k * x) - 1) * (/ U - x) / k).
    { apply Rmult_le_reg_r with (U * k * exp x); [repeat apply Rmult_lt_0_compat; try lra; apply exp_pos |]. rewrite Rmult_0_l.
      replace (((1 + / U) * (exp (- x) - 1) + x + (exp (k * x) - 1) * (/ U - x) / k) * (U * k * exp x)) with
        (k * (U + 1) * (exp (- x) * exp x - exp x) + U * k * x * exp x + (exp (k * x) * exp x - exp x) * (1 - U * x)) by (field; lra).
      rewrite <- !exp_plus. replace (- x + x) with 0 by lra. rewrite exp_0. replace (k * x + x) with (U * x) by (unfold k; ring).
      eapply Rle_trans; [apply F |]. right. unfold k. ring. }
    assert (G : 0 <= m * ((1 + / U) * (exp (- x) - 1) + x + (exp (k * x) - 1) * (/ U - x) / k)) by (apply Rmult_le_pos; lra).
    assert (Hb2 : 0 <= b - m - m * / U).
    { apply Rmult_le_reg_r with U; [lra |]. rewrite Rmult_0_l. replace ((b - m - m * / U) * U) with (U * (b - m) - m) by (field; lra). lra. }
    pose proof (Rmult_le_pos _ _ Hb2 C1) as G2.
    assert (I : exp (- x) * b - (b - m * x - (exp (k * x) - 1) * (b - m * x - m) / k) =
      m * ((1 + / U) * (exp (- x) - 1) + x + (exp (k * x) - 1) * (/ U - x) / k) + (b - m - m * / U) * (exp (- x) - 1 + (exp (k * x) - 1) / k)).
    { field. lra. }
    lra.
Qed.

(* u - 1 >= kappa (u^(1 + 1/k) - u^(-1/k)) between 1 and U *)
Let kappa := k * / U * phi U.
Lemma between : forall u, 1 <= u <= U -> 0 <= u - 1 - kappa * (u * / phi u - phi u).
Proof.
  intros u Hu. pose proof k_pos as K. pose proof phi_U as PU. pose proof U_1 as U1.
  set (r := / k). assert (Hr : 0 < r) by (apply Rinv_0_lt_compat; lra).
  assert (Hk : 0 < kappa) by (unfold kappa; repeat apply Rmult_lt_0_compat; try lra; apply Rinv_0_lt_compat; lra).
  assert (E : forall v, 0 < v -> v * / phi v - phi v = exp ((1 + r) * ln v) - exp (- r * ln v)).
  { intros v Hv. unfold falling. rewrite <- exp_Ropp. rewrite <- (exp_ln v) at 1 by lra. rewrite <- exp_plus.
    f_equal; f_equal; unfold r; field; lra. }
  rewrite E by lra.
  set (f := fun v => v - 1 - kappa * (exp ((1 + r) * ln v) - exp (- r * ln v))).
  set (g := fun v => (1 + r) * exp (r * ln v) + r * exp (- (r + 1) * ln v)).
  change (0 <= f u).
  apply (above_chord f (fun v => 1 - kappa * g v) 1 u U); auto.
  - intros x Hx. unfold f, g. auto_derive; [lra |].
    replace (exp (r * ln x)) with (exp ((1 + r) * ln x) * / x).
    + replace (exp (- (r + 1) * ln x)) with (exp (- r * ln x) * / x); [ring |].
      rewrite <- (exp_ln x) at 2 by lra. rewrite <- exp_Ropp, <- exp_plus. f_equal. ring.
    + rewrite <- (exp_ln x) at 2 by lra. rewrite <- exp_Ropp, <- exp_plus. f_equal. ring.
  - intros x y Hx Hxy Hy. assert (g x <= g y); [| pose proof (Rmult_le_compat_l kappa _ _ ltac:(lra) H); lra].
    apply (grows g (fun v => r * (1 + r) * / v * (exp (r * ln v) - exp (- (r + 1) * ln v))) x y Hxy).
    + intros v Hv. unfold g. auto_derive; [lra |]. ring.
    + intros v Hv. apply Rmult_le_pos; [repeat apply Rmult_le_pos; try lra; left; apply Rinv_0_lt_compat; lra |].
      assert (0 <= ln v) by (apply ln_pos; lra).
      assert (L : - (r + 1) * ln v <= r * ln v).
      { replace (- (r + 1) * ln v) with (r * ln v - (2 * r + 1) * ln v) by ring. pose proof (Rmult_le_pos (2 * r + 1) (ln v)). lra. }
      destruct L as [L | L]; [pose proof (exp_increasing _ _ L); lra | rewrite L; lra].
  - unfold f. rewrite ln_1, !Rmult_0_r, exp_0. lra.
  - unfold f. rewrite <- E by lra. unfold kappa. pose proof (Rmult_lt_0_compat (phi U) (phi U)).
    replace (U - 1 - k * / U * phi U * (U * / phi U - phi U)) with (k * / U * (phi U * phi U)).
    2: { replace (U - 1) with k by reflexivity. field. lra. }
    repeat apply Rmult_le_pos; try lra. left; apply Rinv_0_lt_compat; lra.
Qed.

(* H(y) = y^(1/k) W(y / U) *)
Lemma second_end : forall y, 1 <= y -> W1 (/ U * y) <= phi y * (c + m / k * ln y + (c + m / k * ln y - m) / U).
Proof.
  intros y Hy. pose proof k_pos as K. pose proof phi_U as PU. pose proof U_1 as U1. pose proof D_in as HD. pose proof m_in as HM.
  assert (IU : 0 < / U) by (apply Rinv_0_lt_compat; lra).
  (* up to U *)
  assert (B : forall y, 1 <= y <= U -> W1 (/ U * y) <= phi y * (c + m / k * ln y + (c + m / k * ln y - m) / U)).
  { clear y Hy. intros y Hy. assert (Hy0 : 0 < / U * y) by (apply Rmult_lt_0_compat; lra).
    assert (Hy1 : / U * y <= 1) by (apply Rmult_le_reg_l with U; [lra |]; replace (U * (/ U * y)) with y by (field; lra); lra).
    rewrite W_below by auto. fold D.
    replace (/ (/ U * y)) with (U * / y) by (field; lra). rewrite falling_mult by (try apply Rinv_0_lt_compat; lra).
    assert (Py : phi (/ y) = / phi y).
    { apply falling_of_inverse; lra. }
    rewrite Py. pose proof (falling_pos k y) as Pp.
    set (s := ln y). assert (Es : y = exp s) by (unfold s; rewrite exp_ln; lra).
    (* G(s) >= 0 where G' >= 0 *)
    apply Rmult_le_reg_l with (/ phi y); [apply Rinv_0_lt_compat; lra |].
    replace (/ phi y * (phi y * (c + m / k * s + (c + m / k * s - m) / U))) with (c + m / k * s + (c + m / k * s - m) / U) by (field; lra).
    replace (/ phi y * (1 - / U * y + D * (/ U * y) * (phi U * / phi y))) with (/ phi y - / U * (y * / phi y) + m * / U * (y * / phi y * / phi y)) by (unfold m; ring).
    assert (Ef : forall t, / phi (exp t) = exp (t / k)) by (intro t; unfold falling; rewrite <- exp_Ropp, ln_exp; f_equal; field; lra).
    rewrite Es, Ef.
    set (G := fun t => c + m / k * t + (c + m / k * t - m) / U - (exp (t / k) - / U * (exp t * exp (t / k)) + m * / U * (exp t * exp (t / k) * exp (t / k)))).
    enough (0 <= G s) by (unfold G in H; lra).
    assert (G0 : G 0 = 0).
    { unfold G. replace (0 / k) with 0 by (field; lra). rewrite exp_0.
      unfold c. replace U with (k + 1) by (unfold k; lra). field. lra. }
    rewrite <- G0.
    apply (grows G (fun t => / k * (m * (U + 1) * / U * (1 - exp t * exp (t / k) * exp (t / k)) + exp (t / k) * (exp t - 1))) 0 s).
    - unfold s. apply ln_pos; lra.
    - intros t _. unfold G. auto_derive; auto. replace (t * / k) with (t / k) by reflexivity. replace U with (k + 1) by (unfold k; lra). field. lra.
    - intros t Ht. apply Rmult_le_pos; [left; apply Rinv_0_lt_compat; lra |].
      assert (Hu : 1 <= exp t <= U).
      { split; [rewrite <- exp_0; destruct (proj1 Ht) as [L | <-]; [left; apply exp_increasing; auto | lra] |].
        apply Rle_trans with y; [| lra]. rewrite Es. destruct (proj2 Ht) as [L | ->]; [left; apply exp_increasing; auto | lra]. }
      pose proof (between (exp t) Hu) as Bt.
      rewrite Ef in Bt. replace (phi (exp t)) with (/ exp (t / k)) in Bt by (rewrite <- Ef, Rinv_inv; reflexivity).
      assert (Ep : 0 < exp (t / k)) by apply exp_pos.
      apply (Rmult_le_compat_l (exp (t / k))) in Bt; [| lra]. rewrite Rmult_0_r in Bt.
      eapply Rle_trans; [apply Bt |]. right. unfold kappa, m, D. replace U with (k + 1) by (unfold k; lra).
      field. repeat split; lra. }
  destruct (Rle_dec y U) as [H | H]; [apply B; lra |].
  (* beyond, the left is D phi(y) / phi(U), and the right grows *)
  pose proof (B U ltac:(lra)) as BU. rewrite Rinv_l in BU by lra. rewrite (W_above k 1) in BU by lra. rewrite falling_1 in BU by lra. fold D in BU.
  assert (Hy1 : 1 <= / U * y) by (apply Rmult_le_reg_l with U; [lra |]; replace (U * (/ U * y)) with y by (field; lra); lra).
  rewrite W_above by auto. fold D. rewrite falling_mult by lra.
  assert (PU2 : phi (/ U) = / phi U).
  { apply falling_of_inverse; lra. }
  rewrite PU2. pose proof (falling_pos k y) as Pp.
  assert (Lg : ln U <= ln y) by (left; apply ln_increasing; lra).
  set (a := c + m / k * ln U) in *. 
  assert (Ha : a <= c + m / k * ln y).
  { unfold a. apply Rplus_le_compat_l. apply Rmult_le_compat_l; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra] | lra]. }
  replace (D * (/ phi U * phi y)) with (phi y * (D * / phi U)) by ring. apply Rmult_le_compat_l; [lra |].
  apply Rle_trans with (a + (a - m) / U).
  - apply Rmult_le_reg_l with (phi U); [lra |]. replace (phi U * (D * / phi U)) with D by (field; lra). lra.
  - apply Rplus_le_compat; [lra |]. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra | lra].
Qed.

(* One round, from a state of at least 1 to one of at least 1. *)
Lemma round2_up : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 1 <= y ->
  1 <= (p1 * U + p2 * / U + q) * y ->
  p1 * W1 (U * y) + p2 * W1 (/ U * y) + q * W2 y <= W2 ((p1 * U + p2 * / U + q) * y).
Proof.
  intros p1 p2 q y H1 H2 H3 Hs Hy Hf. set (f := p1 * U + p2 * / U + q) in *.
  pose proof k_pos as K. pose proof U_1 as U1.
  assert (Hfp : 0 < f) by (apply Rmult_lt_reg_r with y; lra).
  eapply Rle_trans; [| apply W2_tangent; auto].
  pose proof (second_end y Hy) as S. apply (Rmult_le_compat_l p2) in S; [| lra].
  assert (HUy : 1 <= U * y) by (pose proof (Rmult_le_compat_r y 1 U); lra).
  rewrite (W_above k (U * y)) by auto. fold D. rewrite falling_mult by lra. rewrite W2_above by auto.
  set (a := c + m / k * ln y) in *.
  replace (D * (phi U * phi y)) with (m * phi y) by (unfold m; ring).
  eapply Rle_trans; [apply Rplus_le_compat_r; apply Rplus_le_compat_l; apply S |].
  right. unfold f. replace q with (1 - p1 - p2) by lra. replace U with (k + 1) by (unfold k; lra). field. lra.
Qed.

(* From a state below 1. *)
Lemma at_one : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y -> y <= 1 ->
  (p1 * U + p2 * / U + q) * y = 1 ->
  p1 * W1 (U * y) + p2 * W1 (/ U * y) + q * W2 y <= W2 1.
Proof.
  (* the turned round: U and 1/U exchanged *)
  intros p1 p2 q y H1 H2 H3 Hs Hy Hy1 Hf. pose proof k_pos as K. pose proof U_1 as U1.
  assert (IU : 0 < / U) by (apply Rinv_0_lt_compat; lra).
  assert (Iy : 1 <= / y) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  pose proof (round2_up (p2 * / U * y) (p1 * U * y) (q * y) (/ y)) as T.
  specialize (T ltac:(repeat apply Rmult_le_pos; lra) ltac:(repeat apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra)).
  specialize (T ltac:(rewrite <- Hf; ring) Iy).
  assert (Ef : p2 * / U * y * U + p1 * U * y * / U + q * y = y).
  { replace (p2 * / U * y * U + p1 * U * y * / U + q * y) with ((p1 + p2 + q) * y) by (field; lra). rewrite Hs; ring. }
  rewrite Ef in T. replace (y * / y) with 1 in T by (field; lra). specialize (T ltac:(lra)).
  rewrite (W_turn k K (U * y)) by (apply Rmult_lt_0_compat; lra).
  rewrite (W_turn k K (/ U * y)) by (apply Rmult_lt_0_compat; lra).
  rewrite (W2_turn y) by lra.
  replace (/ (U * y)) with (/ U * / y) by (field; lra).
  replace (/ (/ U * y)) with (U * / y) by (field; lra).
  eapply Rle_trans; [| apply T]. right.
  replace (p1 * (1 - U * y + U * y * W1 (/ U * / y)) + p2 * (1 - / U * y + / U * y * W1 (U * / y)) + q * (1 - y + y * W2 (/ y)))
    with ((p1 + p2 + q) - (p1 * U + p2 * / U + q) * y + (p2 * / U * y * W1 (U * / y) + p1 * U * y * W1 (/ U * / y) + q * y * W2 (/ y))) by ring.
  rewrite Hs, Hf. ring.
Qed.

Lemma W2_1 : W2 1 = c.
Proof. rewrite W2_above by lra. rewrite ln_1. rewrite falling_1 by (apply k_pos). ring. Qed.

Lemma tangent_1 : forall v, 1 <= v -> c - (v - 1) * (c - m) / k <= W2 v.
Proof.
  intros v Hv. pose proof (W2_tangent 1 v) as T. rewrite falling_1, ln_1 in T by apply k_pos.
  specialize (T ltac:(lra) ltac:(lra) ltac:(lra)). replace (v * 1) with v in T by ring. eapply Rle_trans; [| apply T]. right. field. pose proof k_pos; lra.
Qed.

Lemma round2_low : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y -> y < 1 ->
  1 <= (p1 * U + p2 * / U + q) * y ->
  p1 * W1 (U * y) + p2 * W1 (/ U * y) + q * W2 y <= W2 ((p1 * U + p2 * / U + q) * y).
Proof.
  intros p1 p2 q y H1 H2 H3 Hs Hy Hy1 Hf. set (f := p1 * U + p2 * / U + q) in *.
  pose proof k_pos as K. pose proof U_1 as U1. pose proof c_m_pos as CM. pose proof c_above as CA. pose proof m_in as HM.
  assert (IU : 0 < / U) by (apply Rinv_0_lt_compat; lra).
  assert (IU1 : / U < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
  eapply Rle_trans; [| apply tangent_1; auto].
  assert (HfU : f <= U).
  { unfold f. pose proof (Rmult_le_compat_l p2 (/ U) U H2 ltac:(lra)). pose proof (Rmult_le_compat_l q 1 U H3 ltac:(lra)).
    assert (U = p1 * U + p2 * U + q * U) by (rewrite <- !Rmult_plus_distr_r, Hs; ring). lra. }
  assert (HUy : f * y <= U * y) by (apply Rmult_le_compat_r; lra).
  (* the corner where all mass is at U: W1 is below its chord between 1 and U *)
  assert (C1 : W1 (U * y) <= c - (U * y - 1) * (c - m) / k).
  { assert (Z : / U <= / U * (U * y) <= 1) by (split; [rewrite <- (Rmult_1_r (/ U)) at 1; apply Rmult_le_compat_l; lra | replace (/ U * (U * y)) with y by (field; lra); lra]).
    pose proof (chord_of_lines W1 (/ U) 1 IU IU1 W1_lines (/ U * (U * y)) U Z ltac:(lra)) as C.
    replace (/ U * (U * y) * U) with (U * y) in C by (field; lra). rewrite Rmult_1_l in C. rewrite (Rinv_l U) in C by lra.
    rewrite (W_above k U) in C by lra. rewrite (W_above k 1) in C by lra. rewrite falling_1 in C by auto. fold D in C. fold m in C.
    eapply Rle_trans; [apply C |].
    replace ((1 - / U * (U * y)) / (1 - / U) * (D * 1)) with ((1 - y) / (1 - / U) * D) by (field; repeat split; lra).
    apply Rle_trans with ((/ U * (U * y) - / U) / (1 - / U) * m + (1 - y) / (1 - / U) * c).
    - apply Rplus_le_compat_l. apply Rmult_le_compat_l; [| lra]. apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
    - right. replace U with (k + 1) by (unfold k; lra). field. split; lra. }
  destruct (Req_dec (f * y) (U * y)) as [E | E].
  - assert (f = U) by (apply Rmult_eq_reg_r with y; lra).
    assert (p2 * (U - / U) + q * (U - 1) = 0) by (unfold f in H; replace p1 with (1 - p2 - q) in H by lra; lra).
    assert (0 <= p2 * (U - / U)) by (apply Rmult_le_pos; lra).
    assert (0 <= q * (U - 1)) by (apply Rmult_le_pos; lra).
    assert (p2 = 0) by (apply Rmult_eq_reg_r with (U - / U); lra).
    assert (q = 0) by (apply Rmult_eq_reg_r with (U - 1); lra).
    subst p2 q. rewrite H. replace p1 with 1 by lra. lra.
  - set (l := (f * y - 1) / (U * y - 1)).
    assert (HUy1 : 0 < U * y - 1) by lra.
    assert (Hl : 0 <= l < 1).
    { unfold l. split; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra] |].
      apply Rmult_lt_reg_r with (U * y - 1); auto. replace ((f * y - 1) / (U * y - 1) * (U * y - 1)) with (f * y - 1) by (field; lra). lra. }
    assert (El : l * (U * y - 1) = f * y - 1) by (unfold l; field; lra).
    assert (Hp1 : 0 <= p1 - l).
    { apply Rmult_le_reg_r with (U * y - 1); auto. rewrite Rmult_0_l, Rmult_minus_distr_r, El. unfold f.
      pose proof (Rmult_le_compat_l p2 (/ U * y) 1 H2 ltac:(pose proof (Rmult_lt_compat_l (/ U) y 1); lra)).
      pose proof (Rmult_le_compat_l q y 1 H3 ltac:(lra)). lra. }
    assert (I : 0 < / (1 - l)) by (apply Rinv_0_lt_compat; lra).
    pose proof (at_one ((p1 - l) * / (1 - l)) (p2 * / (1 - l)) (q * / (1 - l)) y) as T.
    specialize (T ltac:(apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra)).
    specialize (T ltac:(replace q with (1 - p1 - p2) by lra; field; lra) Hy ltac:(lra)).
    assert (Ef : ((p1 - l) * / (1 - l) * U + p2 * / (1 - l) * / U + q * / (1 - l)) * y = 1).
    { replace (((p1 - l) * / (1 - l) * U + p2 * / (1 - l) * / U + q * / (1 - l)) * y) with ((f * y - l * (U * y)) * / (1 - l)) by (unfold f; ring).
      apply Rmult_eq_reg_r with (1 - l); [| lra]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    specialize (T Ef). rewrite W2_1 in T.
    apply (Rmult_le_compat_l (1 - l)) in T; [| lra]. apply (Rmult_le_compat_l l) in C1; [| lra].
    replace (p1 * W1 (U * y) + p2 * W1 (/ U * y) + q * W2 y) with
      (l * W1 (U * y) + (1 - l) * ((p1 - l) * / (1 - l) * W1 (U * y) + p2 * / (1 - l) * W1 (/ U * y) + q * / (1 - l) * W2 y)) by (field; lra).
    eapply Rle_trans; [apply Rplus_le_compat; [apply C1 | apply T] |]. right.
    replace (f * y - 1) with (l * (U * y - 1)) by lra. unfold Rdiv. ring.
Qed.

Lemma W2_stop : forall y, 0 < y -> pos (1 - y) <= W2 y.
Proof.
  intros y Hy. pose proof k_pos as K. pose proof m_in as HM. pose proof D_in as HD. pose proof c_above as CA.
  assert (A : forall y, 1 <= y -> 0 <= W2 y).
  { intros v Hv. rewrite W2_above by auto. apply Rmult_le_pos; [left; apply falling_pos |].
    pose proof (Rmult_le_pos (m / k) (ln v) ltac:(apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]) (ln_pos v Hv)). lra. }
  destruct (Rle_dec 1 y) as [H | H].
  - apply pos_least; [pose proof (A y H); lra | auto].
  - rewrite W2_turn by lra. assert (1 <= / y) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    pose proof (Rmult_le_pos y (W2 (/ y)) ltac:(lra) (A _ H0)). apply pos_least; lra.
Qed.

Lemma one_general : forall g a b, alive (/ U) U same g -> 0 < a -> 0 < b -> delta g a b <= a * W1 (b / a).
Proof.
  pose proof k_pos as K. pose proof U_1 as U1.
  assert (IU : 0 < / U < 1) by (split; [apply Rinv_0_lt_compat; lra | rewrite <- Rinv_1; apply Rinv_lt_contravar; lra]).
  assert (Ek : 1 + k = U) by (unfold k; lra).
  intros g a b Hs Ha Hb. revert g Hs a b Ha Hb.
  refine (potential (/ U) U ltac:(lra) ltac:(lra) same (fun y => pos (1 - y)) W1 _ _ _ _).
  - intros g'' a b Hs Ha Hb. rewrite delta_same by auto. rewrite <- pos_times by lra. right. f_equal. field. lra.
  - intros; apply W_stop; auto.
  - intros z y Hz Hy. apply (chord_of_lines (fun y => pos (1 - y)) (/ U) U); try lra. apply pos_lines.
  - intros. apply (turn U U1 (fun y => pos (1 - y)) W1); auto.
    + intros; apply pos_turn; auto.
    + intros; apply W_turn; auto.
    + intros p1' p2' q' y' A1 A2 A3 A4 A5. rewrite <- Ek. apply round_up; auto.
Qed.

Theorem general_add_remove : forall g eps, 0 <= eps -> alive (exp (- eta)) (exp eta) same g ->
  delta g 1 (exp eps) <= D * exp (- eps / k).
Proof.
  intros g eps He Hg. assert (EU : exp (- eta) = / U) by (apply exp_Ropp). rewrite EU in Hg. fold U in Hg.
  pose proof (one_general g 1 (exp eps) Hg ltac:(lra) (exp_pos _)) as Q.
  replace (1 * W1 (exp eps / 1)) with (W1 (exp eps)) in Q by (unfold Rdiv; rewrite Rinv_1, Rmult_1_r; ring).
  rewrite W_above in Q by (rewrite <- exp_0; apply exp_le; lra).
  unfold falling in Q. rewrite ln_exp in Q. exact Q.
Qed.

Theorem general_replace_one : forall g eps, 0 <= eps ->
  alive (exp (- eta)) (exp eta) (alive (exp (- eta)) (exp eta) same) g ->
  delta g 1 (exp eps) <= (c + m / k * eps) * exp (- eps / k).
Proof.
  intros g eps He Hg. pose proof k_pos as K. pose proof U_1 as U1.
  assert (IU : 0 < / U < 1) by (split; [apply Rinv_0_lt_compat; lra | rewrite <- Rinv_1; apply Rinv_lt_contravar; lra]).
  assert (EU : exp (- eta) = / U) by (apply exp_Ropp). rewrite EU in Hg. fold U in Hg.
  assert (Ek : 1 + k = U) by (unfold k; lra).
  assert (Q : delta g 1 (exp eps) <= 1 * W2 (exp eps / 1)).
  { apply (potential (/ U) U ltac:(lra) ltac:(lra) (alive (/ U) U same) W1 W2); auto; try lra; [apply one_general | | | | apply exp_pos].
    - intros; apply W2_stop; auto.
    - intros z y Hz Hy. apply (chord_of_lines W1 (/ U) U); try lra. apply W1_lines.
    - intros p1 p2 q y A1 A2 A3 A4 A5. apply (turn U U1 W1 W2); auto.
      + intros; apply W_turn; auto.
      + intros; apply W2_turn; auto.
      + intros p1' p2' q' y' B1 B2 B3 B4 B5 B6.
        destruct (Rle_dec 1 y'); [apply round2_up; auto | apply round2_low; auto; lra]. }
  replace (1 * W2 (exp eps / 1)) with (W2 (exp eps)) in Q by (unfold Rdiv; rewrite Rinv_1, Rmult_1_r; ring).
  rewrite W2_above in Q by (rewrite <- exp_0; apply exp_le; lra).
  rewrite ln_exp in Q. unfold falling in Q. rewrite ln_exp in Q. lra.
Qed.
End Two.
