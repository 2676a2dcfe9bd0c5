(* The removal lemma where each record moves scores one way: forms (b), add-remove, and (d), replace-one. *)

Require Import Reals Lra Psatz List.
From fastdp Require Import real_functions removal_game.
Import ListNotations.
Open Scope R_scope.

Section Signed.
Variable eta : R.
Hypothesis eta_pos : 0 < eta.
Let U := exp eta.
Let k := U - 1.
Notation phi := (falling k).

Lemma k_pos : 0 < k. Proof. unfold k, U. pose proof (exp_ineq1 eta). lra. Qed.
Lemma U_1 : 1 < U. Proof. pose proof k_pos; unfold k in *; lra. Qed.

Definition V (y : R) : R := if Rle_dec y 1 then 1 - y / U else k / U * phi y.

Lemma V_below : forall y, y <= 1 -> V y = 1 - y / U.
Proof. intros; unfold V. destruct (Rle_dec y 1); lra. Qed.
Lemma V_above : forall y, 1 <= y -> V y = k / U * phi y.
Proof.
  intros; unfold V. destruct (Rle_dec y 1); [| lra]. replace y with 1 by lra.
  pose proof k_pos; pose proof U_1. rewrite falling_1 by auto. unfold k. field. lra.
Qed.

Lemma kU : 0 < k / U. Proof. apply Rdiv_lt_0_compat; [apply k_pos | pose proof U_1; lra]. Qed.

Lemma V_line : forall y, 0 < y -> 1 - y / U <= V y.
Proof.
  intros y Hy. pose proof k_pos as K. pose proof U_1 as U1. pose proof kU.
  destruct (Rle_dec y 1); [rewrite V_below; lra |]. rewrite V_above by lra.
  pose proof (falling_above_tangent k K y Hy) as T. apply (Rmult_le_compat_l (k / U)) in T; [| lra].
  eapply Rle_trans; [| apply T]. right. replace U with (k + 1) by (unfold k; lra). field. lra.
Qed.

Lemma V_pos : forall y, 0 < y -> 0 < V y.
Proof.
  intros y Hy. pose proof k_pos as K. pose proof U_1 as U1. pose proof kU. destruct (Rle_dec y 1).
  - rewrite V_below by auto. assert (y / U < 1) by (apply Rmult_lt_reg_r with U; [lra |]; replace (y / U * U) with y by (field; lra); lra). lra.
  - rewrite V_above by lra. apply Rmult_lt_0_compat; [auto | apply falling_pos].
Qed.

(* What is worth (1 - y)_+ is worth no more than V (U y). *)
Lemma V_stop : forall y, 0 < y -> pos (1 - y) <= V (U * y).
Proof.
  intros y Hy. pose proof U_1 as U1. assert (0 < U * y) by (apply Rmult_lt_0_compat; lra).
  apply pos_least; [| left; apply V_pos; auto]. pose proof (V_line (U * y) H).
  replace (U * y / U) with y in H0 by (field; lra). auto.
Qed.

Lemma grown : forall p, 0 <= p <= 1 -> (1 - p) * / phi (1 + k * p) <= 1.
Proof.
  intros p Hp. pose proof k_pos as K. pose proof (Rmult_le_pos k p ltac:(lra) ltac:(lra)) as KP.
  assert (E : / phi (1 + k * p) <= exp p).
  { unfold falling. rewrite <- exp_Ropp. assert (L : ln (1 + k * p) <= k * p) by (pose proof (ln_below_line (1 + k * p)); lra).
    assert (L2 : - (- ln (1 + k * p) / k) <= p) by (apply Rmult_le_reg_r with k; auto; replace (- (- ln (1 + k * p) / k) * k) with (ln (1 + k * p)) by (field; lra); lra).
    destruct L2 as [L2 | ->]; [left; apply exp_increasing; auto | lra]. }
  apply (Rmult_le_compat_l (1 - p)) in E; [| lra]. eapply Rle_trans; [apply E |].
  replace 1 with (exp (- p) * exp p) at 2 by (rewrite <- exp_plus; replace (- p + p) with 0 by lra; apply exp_0).
  apply Rmult_le_compat_r; [left; apply exp_pos |]. pose proof (exp_above_line (- p)). lra.
Qed.

(* (1) *)
Lemma round1 : forall p Y, 0 <= p <= 1 -> 0 < Y ->
  p * pos (1 - Y / (1 + k * p)) + (1 - p) * V (Y / (1 + k * p)) <= V Y.
Proof.
  intros p Y Hp HY. pose proof k_pos as K. pose proof U_1 as U1. set (f := 1 + k * p).
  assert (Hf : 1 <= f) by (unfold f; pose proof (Rmult_le_pos k p); lra).
  assert (Hq : 0 < Y / f) by (apply Rdiv_lt_0_compat; lra).
  destruct (Rle_dec (Y / f) 1) as [H | H].
  - eapply Rle_trans; [| apply V_line; auto]. rewrite V_below by auto. unfold pos. rewrite Rmax_right by lra.
    right. unfold f. replace U with (k + 1) by (unfold k; lra). field. fold f. lra.
  - assert (HYf : f < Y) by (apply Rnot_le_lt in H; apply (Rmult_lt_compat_r f) in H; [| lra]; replace (Y / f * f) with Y in H by (field; lra); lra).
    unfold pos. rewrite Rmax_left by lra. rewrite (V_above (Y / f)), (V_above Y) by lra.
    unfold Rdiv at 2. rewrite falling_mult by (try apply Rinv_0_lt_compat; lra).
    assert (E : phi (/ f) = / phi f).
    { apply falling_of_inverse; lra. }
    rewrite E. pose proof (grown p Hp) as G. fold f in G. pose proof kU. pose proof (falling_pos k Y).
    replace (p * 0 + (1 - p) * (k / U * (phi Y * / phi f))) with (k / U * phi Y * ((1 - p) * / phi f)) by ring.
    rewrite <- (Rmult_1_r (k / U * phi Y)) at 2. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | auto].
Qed.

(* V lies above a line through each of its points. *)
Lemma V_lines : forall x, 0 < x -> exists slope, forall v, 0 < v -> V x + slope * (v - x) <= V v.
Proof.
  intros x Hx. pose proof k_pos as K. pose proof U_1 as U1. pose proof kU as KU.
  destruct (Rle_dec x 1) as [H | H].
  - exists (- / U). intros v Hv. rewrite (V_below x H). eapply Rle_trans; [| apply V_line; auto]. right. field. lra.
  - assert (px : 0 < phi x) by apply falling_pos. exists (- (k / U * phi x / (k * x))). intros v Hv. rewrite (V_above x) by lra.
    assert (T : phi x * (1 - (v / x - 1) / k) <= phi v).
    { replace v with (x * (v / x)) at 2 by (field; lra). rewrite falling_mult; auto; try lra; [| apply Rdiv_lt_0_compat; lra].
      apply Rmult_le_compat_l; [lra |]. apply falling_above_tangent; auto. apply Rdiv_lt_0_compat; lra. }
    apply (Rmult_le_compat_l (k / U)) in T; [| lra].
    replace (k / U * phi x + - (k / U * phi x / (k * x)) * (v - x)) with (k / U * (phi x * (1 - (v / x - 1) / k))) by (field; lra).
    destruct (Rle_dec 1 v) as [H1 | H1]; [rewrite V_above by lra; exact T |].
    rewrite V_below by lra.
    assert (T1 : phi x * (1 - (1 / x - 1) / k) <= 1).
    { pose proof (falling_above_tangent k K (1 / x) ltac:(apply Rdiv_lt_0_compat; lra)) as T1.
      apply (Rmult_le_compat_l (phi x)) in T1; [| lra]. rewrite <- falling_mult in T1; try lra; [| apply Rdiv_lt_0_compat; lra].
      replace (x * (1 / x)) with 1 in T1 by (field; lra). rewrite falling_1 in T1 by lra. exact T1. }
    assert (px1 : phi x / x <= 1).
    { assert (phi x <= 1).
      { unfold falling. rewrite <- exp_0. assert (0 <= ln x * / k) by (apply Rmult_le_pos; [apply ln_pos; lra | left; apply Rinv_0_lt_compat; lra]).
        assert (L : - ln x / k <= 0) by (unfold Rdiv; lra). destruct L as [L | ->]; [left; apply exp_increasing; auto | lra]. }
      apply Rmult_le_reg_r with x; [lra |]. replace (phi x / x * x) with (phi x) by (field; lra). lra. }
    apply Rle_trans with (k / U * (1 + (1 - v) / k)).
    + apply Rmult_le_compat_l; [lra |].
      replace (phi x * (1 - (v / x - 1) / k)) with (phi x * (1 - (1 / x - 1) / k) + phi x / x * ((1 - v) / k)) by (field; lra).
      apply Rplus_le_compat; [exact T1 |]. rewrite <- (Rmult_1_l ((1 - v) / k)) at 2. apply Rmult_le_compat_r; [| exact px1]. apply Rmult_le_pos; [lra |]. left; apply Rinv_0_lt_compat; lra.
    + right. replace U with (k + 1) by (unfold k; lra). field. lra.
Qed.

Lemma scaled_lines : forall x, 0 < x -> exists slope, forall v, 0 < v -> V (U * x) + slope * (v - x) <= V (U * v).
Proof.
  intros x Hx. pose proof U_1 as U1. destruct (V_lines (U * x)) as [s Hs]; [apply Rmult_lt_0_compat; lra |].
  exists (s * U). intros v Hv. pose proof (Hs (U * v) ltac:(apply Rmult_lt_0_compat; lra)). 
  replace (s * U * (v - x)) with (s * (U * v - U * x)) by ring. auto.
Qed.

(* The run with the smaller weights against the other. *)
Lemma one_signed : forall g a b, alive 1 U same g -> 0 < a -> 0 < b -> delta g a b <= a * V (U * (b / a)).
Proof.
  intros g a b Hs Ha Hb. pose proof U_1 as U1. pose proof k_pos as K. revert g Hs a b Ha Hb.
  refine (potential 1 U ltac:(lra) ltac:(lra) same (fun y => pos (1 - y)) (fun y => V (U * y)) _ _ _ _).
  - intros g' a b Hs Ha Hb. rewrite delta_same by auto. rewrite <- pos_times by lra. right. f_equal. field. lra.
  - intros; apply V_stop; auto.
  - intros z y Hz Hy. apply (chord_of_lines (fun y => pos (1 - y)) 1 U); try lra. apply pos_lines.
  - intros p1 p2 q y H1 H2 H3 Hs Hy. pose proof (V_stop y Hy) as S. apply (Rmult_le_compat_l p2) in S; [| lra].
    pose proof (round1 p1 (U * ((p1 * U + p2 * 1 + q) * y))) as R. 
    replace (1 + k * p1) with (p1 * U + p2 * 1 + q) in R by (unfold k; lra).
    assert (Hf : 0 < p1 * U + p2 * 1 + q) by (pose proof (Rmult_le_compat_l p1 1 U H1 ltac:(lra)); lra).
    replace (U * ((p1 * U + p2 * 1 + q) * y) / (p1 * U + p2 * 1 + q)) with (U * y) in R by (field; lra).
    specialize (R ltac:(lra) ltac:(repeat apply Rmult_lt_0_compat; lra)).
    rewrite Rmult_1_l. replace (1 - p1) with (p2 + q) in R by lra. lra.
Qed.

Theorem signed_add_remove : forall g eps, 0 <= eps -> alive 1 (exp eta) same g ->
  delta g 1 (exp eps) <= (1 - exp (- eta)) * exp (- (eps + eta) / k).
Proof.
  intros g eps He Hg. pose proof U_1 as U1. pose proof (one_signed g 1 (exp eps) Hg ltac:(lra) (exp_pos _)) as Q.
  assert (H1 : 1 <= exp eps) by (rewrite <- exp_0; apply exp_le; lra).
  replace (U * (exp eps / 1)) with (exp (eps + eta)) in Q by (rewrite exp_plus; unfold U; field).
  rewrite V_above in Q by (rewrite exp_plus; fold U; pose proof (Rmult_le_compat 1 (exp eps) 1 U); lra).
  unfold falling in Q. rewrite ln_exp in Q. rewrite exp_Ropp. fold U.
  replace (1 - / U) with (k / U) by (unfold k; field; lra). lra.
Qed.

(* ---- two records, one of which raises and the other lowers ---- *)
Let A := 1 - / U * / U.
Definition V2 (y : R) : R := if Rle_dec y 1 then 1 - y * / U * / U else phi y * (A + ln y / U).

Lemma V2_below : forall y, y <= 1 -> V2 y = 1 - y * / U * / U.
Proof. intros; unfold V2. destruct (Rle_dec y 1); lra. Qed.
Lemma V2_above : forall y, 1 <= y -> V2 y = phi y * (A + ln y / U).
Proof.
  intros; unfold V2. destruct (Rle_dec y 1); [| lra]. replace y with 1 by lra. rewrite ln_1, falling_1 by apply k_pos.
  unfold A. pose proof U_1. field. lra.
Qed.

Lemma V2_line : forall y, 0 < y -> 1 - y * / U * / U <= V2 y.
Proof.
  intros y Hy. pose proof k_pos as K. pose proof U_1 as U1.
  destruct (Rle_dec y 1) as [H | H]; [rewrite V2_below by auto; lra |]. rewrite V2_above by lra.
  set (x := ln y / k). assert (Hx : 0 <= x) by (apply Rmult_le_pos; [apply ln_pos; lra | left; apply Rinv_0_lt_compat; lra]).
  assert (Ey : y = exp (k * x)) by (unfold x; replace (k * (ln y / k)) with (ln y) by (field; lra); rewrite exp_ln; lra).
  assert (Ep : phi y = exp (- x)) by (unfold falling, x; f_equal; field; lra).
  rewrite Ep. replace (ln y) with (k * x) by (unfold x; field; lra). rewrite Ey.
  pose proof (curve_up U x ltac:(lra) Hx) as F.
  apply Rmult_le_reg_r with (U * U * exp x); [repeat apply Rmult_lt_0_compat; try lra; apply exp_pos |].
  replace (exp (- x) * (A + k * x / U) * (U * U * exp x)) with (exp (- x) * exp x * (U * U * A + U * k * x)) by (field; lra).
  replace ((1 - exp (k * x) * / U * / U) * (U * U * exp x)) with (U * U * exp x - exp (k * x) * exp x) by (field; lra).
  rewrite <- !exp_plus. replace (- x + x) with 0 by lra. rewrite exp_0. replace (k * x + x) with (U * x) by (unfold k; ring).
  replace (U * U * A) with (U * U - 1) by (unfold A; field; lra). unfold k. lra.
Qed.

Lemma V2_over_V : forall Y, 0 < Y -> V (Y / U) <= V2 Y.
Proof.
  intros Y HY. pose proof k_pos as K. pose proof U_1 as U1. pose proof kU as KU.
  assert (B : forall Y, 0 < Y -> Y <= U -> V (Y / U) <= V2 Y).
  { intros v Hv Hv2. rewrite V_below by (apply Rmult_le_reg_r with U; [lra |]; replace (v / U * U) with v by (field; lra); lra).
    eapply Rle_trans; [| apply V2_line; auto]. right. field. lra. }
  destruct (Rle_dec Y U) as [H | H]; [apply B; auto |].
  pose proof (B U ltac:(lra) ltac:(lra)) as BU. replace (U / U) with 1 in BU by (field; lra).
  rewrite (V_above 1), falling_1, Rmult_1_r in BU by lra. rewrite (V2_above U) in BU by lra.
  assert (HYU : 1 <= Y / U) by (apply Rmult_le_reg_r with U; [lra |]; replace (Y / U * U) with Y by (field; lra); lra).
  rewrite V_above, V2_above by lra. unfold Rdiv at 2. rewrite falling_mult by (try apply Rinv_0_lt_compat; lra).
  assert (E : phi (/ U) = / phi U).
  { apply falling_of_inverse; lra. }
  rewrite E. pose proof (falling_pos k U) as PU. pose proof (falling_pos k Y).
  replace (k / U * (phi Y * / phi U)) with (phi Y * (k / U * / phi U)) by ring. apply Rmult_le_compat_l; [lra |].
  apply Rle_trans with (A + ln U / U).
  - apply Rmult_le_reg_l with (phi U); auto. replace (phi U * (k / U * / phi U)) with (k / U) by (field; lra). auto.
  - apply Rplus_le_compat_l. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra |]. left; apply ln_increasing; lra.
Qed.

(* (2) *)
Lemma round2 : forall p Y, 0 <= p <= 1 -> 0 < Y ->
  p * V (Y / (1 + k * p)) + (1 - p) * V2 (Y / (1 + k * p)) <= V2 Y.
Proof.
  intros p Y Hp HY. pose proof k_pos as K. pose proof U_1 as U1. set (f := 1 + k * p).
  assert (Hf : 1 <= f) by (unfold f; pose proof (Rmult_le_pos k p); lra).
  assert (Hq : 0 < Y / f) by (apply Rdiv_lt_0_compat; lra).
  assert (Line : p * (1 - Y / f / U) + (1 - p) * (1 - Y / f * / U * / U) = 1 - Y * / U * / U).
  { unfold f. replace U with (k + 1) by (unfold k; lra). field. fold f. lra. }
  destruct (Rle_dec (Y / f) 1) as [H | H].
  - rewrite V_below, V2_below by auto. rewrite Line. apply V2_line; auto.
  - assert (HYf : f < Y) by (apply Rnot_le_lt in H; apply (Rmult_lt_compat_r f) in H; [| lra]; replace (Y / f * f) with Y in H by (field; lra); lra).
    (* at Y = f both sides are those of the line *)
    pose proof (V2_line f ltac:(lra)) as LF. rewrite V2_above in LF by lra.
    assert (LineF : p * (k / U) + (1 - p) * A = 1 - f * / U * / U).
    { unfold A, f. replace U with (k + 1) by (unfold k; lra). field. lra. }
    rewrite (V_above (Y / f)), (V2_above (Y / f)), (V2_above Y) by lra.
    replace (phi (Y / f)) with (phi Y * phi (/ f)) by (unfold Rdiv; rewrite falling_mult by (try apply Rinv_0_lt_compat; lra); reflexivity).
    assert (E : phi (/ f) = / phi f).
    { apply falling_of_inverse; lra. }
    rewrite E. replace (ln (Y / f)) with (ln Y + - ln f) by (unfold Rdiv; rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; lra); ring).
    pose proof (grown p Hp) as G. fold f in G. pose proof (falling_pos k Y) as PY. pose proof (falling_pos k f) as PF.
    assert (Lg : 0 <= ln Y - ln f) by (assert (ln f < ln Y) by (apply ln_increasing; lra); lra).
    replace (p * (k / U * (phi Y * / phi f)) + (1 - p) * (phi Y * / phi f * (A + (ln Y + - ln f) / U))) with
      (phi Y * (/ phi f * (p * (k / U) + (1 - p) * A) + (1 - p) * / phi f * ((ln Y - ln f) / U))) by (unfold Rdiv; ring).
    apply Rmult_le_compat_l; [lra |]. rewrite LineF.
    apply Rle_trans with (A + ln f / U + 1 * ((ln Y - ln f) / U)).
    + apply Rplus_le_compat.
      * apply Rmult_le_reg_l with (phi f); auto. replace (phi f * (/ phi f * (1 - f * / U * / U))) with (1 - f * / U * / U) by (field; lra). auto.
      * apply Rmult_le_compat_r; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra] | auto].
    + right. field. lra.
Qed.

Theorem signed_replace_one : forall g eps, 0 <= eps ->
  alive 1 (exp eta) (alive 1 (exp eta) same) g ->
  delta g 1 (exp eps) <= (1 - exp (- 2 * eta) + (eps + 2 * eta) * exp (- eta)) * exp (- (eps + 2 * eta) / k).
Proof.
  intros g eps He Hg. pose proof U_1 as U1. pose proof k_pos as K.
  assert (Q : delta g 1 (exp eps) <= 1 * V2 (U * U * (exp eps / 1))).
  { apply (potential 1 U ltac:(lra) ltac:(lra) (alive 1 U same) (fun y => V (U * y)) (fun y => V2 (U * U * y))); auto; try lra; [| | | | apply exp_pos].
    - intros g' a b Hs Ha Hb. apply one_signed; auto.
    - intros y Hy. eapply Rle_trans; [apply V_stop; auto |].
      replace (U * y) with (U * U * y / U) by (field; lra). apply V2_over_V. repeat apply Rmult_lt_0_compat; lra.
    - intros z y Hz Hy. apply (chord_of_lines (fun y => V (U * y)) 1 U); try lra. apply scaled_lines.
    - intros p1 p2 q y H1 H2 H3 Hs Hy.
      assert (Hf : 0 < p1 * U + p2 * 1 + q) by (pose proof (Rmult_le_compat_l p1 1 U H1 ltac:(lra)); lra).
      pose proof (round2 p1 (U * U * ((p1 * U + p2 * 1 + q) * y))) as R.
      replace (1 + k * p1) with (p1 * U + p2 * 1 + q) in R by (unfold k; lra).
      replace (U * U * ((p1 * U + p2 * 1 + q) * y) / (p1 * U + p2 * 1 + q)) with (U * U * y) in R by (field; lra).
      specialize (R ltac:(lra) ltac:(repeat apply Rmult_lt_0_compat; lra)).
      pose proof (V2_over_V (U * U * y) ltac:(repeat apply Rmult_lt_0_compat; lra)) as S.
      replace (U * U * y / U) with (U * y) in S by (field; lra). apply (Rmult_le_compat_l p2) in S; [| lra].
      rewrite Rmult_1_l. replace (U * (U * y)) with (U * U * y) by ring. replace (1 - p1) with (p2 + q) in R by lra. lra. }
  assert (H1 : 1 <= exp eps) by (rewrite <- exp_0; apply exp_le; lra).
  replace (U * U * (exp eps / 1)) with (exp (eps + 2 * eta)) in Q.
  2: { replace (eps + 2 * eta) with (eps + eta + eta) by ring. rewrite !exp_plus. unfold U. field. }
  rewrite V2_above in Q.
  2: { rewrite <- exp_0. destruct (Rle_lt_or_eq_dec 0 (eps + 2 * eta)) as [L | L]; [lra | left; apply exp_increasing; auto | rewrite <- L; right; reflexivity]. }
  unfold falling in Q. rewrite ln_exp in Q. eapply Rle_trans; [apply Q |]. right. unfold A.
  replace (exp (- 2 * eta)) with (/ U * / U).
  - rewrite exp_Ropp. fold U. unfold Rdiv. ring.
  - replace (- 2 * eta) with (- eta + - eta) by ring. rewrite exp_plus, exp_Ropp. reflexivity.
Qed.

(* ---- the other direction: the larger weights against the smaller ---- *)
Fixpoint removals (n : nat) : game -> Prop :=
  match n with O => same | S m => alive (/ U) 1 (removals m) end.

Lemma pure : forall n g a b, removals n g -> 0 < a -> U ^ n * a <= b -> delta g a b <= 0.
Proof.
  pose proof U_1 as U1.
  induction n as [| n IHn].
  - intros g a b Hs Ha Hb. simpl in *. rewrite delta_same by auto. apply pos_least; lra.
  - induction g as [| cs IH] using game_induction; intros a b Hg Ha Hb.
    + simpl. apply pos_least; [| lra]. assert (1 <= U ^ S n) by (apply pow_R1_Rle; lra).
      pose proof (Rmult_le_compat_r a 1 (U ^ S n)). lra.
    + destruct Hg as [Hne Hg]. change (delta (Round cs) a b) with
       ((fix over (rest : list (R * R * game)) : R := match rest with [] => 0 | (w, w', g') :: more => delta g' (a * (w / sum weight cs)) (b * (w' / sum weight' cs)) + over more end) cs).
      assert (T : forall rest, (fix each (rest : list (R * R * game)) : Prop :=
         match rest with
         | [] => True
         | (w, w', g') :: more =>
             0 < w /\ ((w' = w /\ alive (/ U) 1 (removals n) g') \/ (/ U * w <= w' <= 1 * w /\ removals n g')) /\ each more
         end) rest -> 0 <= sum weight' rest <= sum weight rest /\ (rest <> [] -> 0 < sum weight' rest)).
      { assert (IU : 0 < / U) by (apply Rinv_0_lt_compat; lra).
        induction rest as [| [[w w'] g'] more IHr]; simpl; intro H; [split; [lra | congruence] |].
        destruct H as (Hw & Hc & Hm). destruct (IHr Hm) as [B _]. unfold weight, weight' in *; simpl in *.
        assert (0 < w' <= w) by (destruct Hc as [[-> _] | [[Hl Hh] _]]; [lra | pose proof (Rmult_lt_0_compat (/ U) w IU Hw); lra]).
        split; [lra | intros _; lra]. }
      destruct (T cs Hg) as [[_ Zle] Zp]. specialize (Zp Hne). clear T Hne.
      set (Z := sum weight cs) in *. set (Z' := sum weight' cs) in *. clearbody Z Z'.
      induction cs as [| [[w w'] g'] more IHc]; [lra |]. inversion IH as [| ? ? I1 I2]; subst. destruct Hg as (Hw & Hc & Hm).
      specialize (IHc I2 Hm).
      assert (Haw : 0 < a * (w / Z)) by (apply Rmult_lt_0_compat; [lra | apply Rdiv_lt_0_compat; lra]).
      assert (Hb0 : 0 < b) by (assert (0 < U ^ S n) by (apply pow_lt; lra); pose proof (Rmult_lt_0_compat (U ^ S n) a); lra).
      assert (Iz : / Z <= / Z') by (apply Rinv_le_contravar; lra).
      assert (delta g' (a * (w / Z)) (b * (w' / Z')) <= 0); [| lra].
      destruct Hc as [[-> Hc] | [[Hl Hh] Hc]].
      * apply (I1 (a * (w / Z)) (b * (w / Z')) Hc Haw).
        replace (U ^ S n * (a * (w / Z))) with (U ^ S n * a * w * / Z) by (unfold Rdiv; ring).
        replace (b * (w / Z')) with (b * w * / Z') by (unfold Rdiv; ring).
        apply Rmult_le_compat; [| left; apply Rinv_0_lt_compat; lra | apply Rmult_le_compat_r; lra | auto].
        repeat apply Rmult_le_pos; try lra. apply pow_le; lra.
      * apply (IHn g' (a * (w / Z)) (b * (w' / Z')) Hc Haw).
        replace (U ^ n * (a * (w / Z))) with (U ^ S n * a * (/ U * w) * / Z) by (simpl; field; lra).
        replace (b * (w' / Z')) with (b * w' * / Z') by (unfold Rdiv; ring).
        assert (0 < / U * w) by (apply Rmult_lt_0_compat; [apply Rinv_0_lt_compat; lra | lra]).
        apply Rmult_le_compat; [| left; apply Rinv_0_lt_compat; lra | apply Rmult_le_compat; try lra | auto].
        -- apply Rmult_le_pos; [apply Rmult_le_pos; [apply pow_le; lra | lra] | lra].
        -- apply Rmult_le_pos; [apply pow_le; lra | lra].
Qed.

Theorem larger_against_smaller : forall n g eps, removals n g -> INR n * eta <= eps -> delta g 1 (exp eps) <= 0.
Proof.
  intros n g eps Hg He. apply (pure n); auto; [lra |]. rewrite Rmult_1_r.
  replace (U ^ n) with (exp (INR n * eta)).
  - destruct He as [He | ->]; [left; apply exp_increasing; auto | lra].
  - unfold U. clear. induction n as [| n IHn]; [simpl; rewrite Rmult_0_l; apply exp_0 |].
    rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IHn. simpl. ring.
Qed.
End Signed.

(* ---- by way of a third run: both records raise, or both lower ---- *)
Section Third.
Variable T : Type.
Variables p q r : T -> R.  (* probabilities of the transcripts under D, E and D' *)
Fixpoint total (f : T -> R) (all : list T) : R := match all with [] => 0 | t :: rest => f t + total f rest end.

Lemma pure_first : forall a b x all, 0 <= a -> (forall t, In t all -> p t <= a * q t) ->
  total (fun t => pos (q t - b * r t)) all <= x -> total (fun t => pos (p t - a * b * r t)) all <= a * x.
Proof.
  intros a b x all Ha Hp Hx. apply Rle_trans with (a * total (fun t => pos (q t - b * r t)) all); [| apply Rmult_le_compat_l; lra].
  clear Hx. induction all as [| t rest IH]; simpl; [lra |].
  rewrite Rmult_plus_distr_l. apply Rplus_le_compat; [| apply IH; intros; apply Hp; right; auto].
  rewrite <- pos_times by lra. unfold pos. apply Rle_max_compat_l. pose proof (Hp t (or_introl eq_refl)). lra.
Qed.

Lemma pure_last : forall a b x all, 0 <= b -> (forall t, In t all -> q t <= a * r t) ->
  total (fun t => pos (p t - b * q t)) all <= x -> total (fun t => pos (p t - b * a * r t)) all <= x.
Proof.
  intros a b x all Hb Hq Hx. eapply Rle_trans; [| apply Hx]. clear Hx.
  induction all as [| t rest IH]; simpl; [lra |].
  apply Rplus_le_compat; [| apply IH; intros; apply Hq; right; auto].
  unfold pos. apply Rle_max_compat_l. pose proof (Rmult_le_compat_l b _ _ Hb (Hq t (or_introl eq_refl))). lra.
Qed.
End Third.
