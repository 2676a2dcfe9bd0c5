(* What the other proofs use of analysis: positive parts, lines below the exponential, slopes, and y^(-1/k). *)

Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Definition pos (x : R) : R := Rmax 0 x.

Lemma pos_least : forall x m, x <= m -> 0 <= m -> pos x <= m.
Proof. intros; unfold pos; apply Rmax_lub; lra. Qed.
Lemma pos_0 : forall x, 0 <= pos x.
Proof. intros; apply Rmax_l. Qed.
Lemma pos_self : forall x, x <= pos x.
Proof. intros; apply Rmax_r. Qed.
Lemma pos_times : forall a x, 0 <= a -> pos (a * x) = a * pos x.
Proof. intros. unfold pos. rewrite <- RmaxRmult by lra. rewrite Rmult_0_r. reflexivity. Qed.

Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof. intros x y [H | ->]; [left; apply exp_increasing; auto | lra]. Qed.

Lemma exp_above_line : forall x, 1 + x <= exp x.
Proof. intro x. destruct (Req_dec x 0) as [->|]; [rewrite exp_0; lra | left; apply exp_ineq1; lra]. Qed.

Lemma ln_below_line : forall y, 0 < y -> ln y <= y - 1.
Proof. intros y Hy. pose proof (exp_above_line (ln y)) as H. rewrite exp_ln in H; lra. Qed.

Lemma ln_pos : forall y, 1 <= y -> 0 <= ln y.
Proof. intros y [H | <-]; [rewrite <- ln_1; left; apply ln_increasing; lra | rewrite ln_1; lra]. Qed.

Lemma grows : forall (f f' : R -> R) a b, a <= b ->
  (forall x, a <= x <= b -> is_derive f x (f' x)) -> (forall x, a <= x <= b -> 0 <= f' x) -> f a <= f b.
Proof.
  intros f f' a b Hab Hd Hp.
  destruct (MVT_gen f a b f') as (c & Hc & E).
  - intros x Hx. apply Hd. rewrite Rmin_left, Rmax_right in Hx; lra.
  - intros x Hx. rewrite Rmin_left, Rmax_right in Hx by lra.
    apply derivable_continuous_pt. exists (f' x). apply is_derive_Reals. apply Hd; lra.
  - rewrite Rmin_left, Rmax_right in Hc by lra. pose proof (Hp c Hc).
    pose proof (Rmult_le_pos (f' c) (b - a)). lra.
Qed.

(* A function whose slope never grows, and that is not negative at two ends, is not negative between them. *)
Lemma above_chord : forall (f f' : R -> R) a u b, a <= u <= b ->
  (forall x, a <= x <= b -> is_derive f x (f' x)) ->
  (forall x y, a <= x -> x <= y -> y <= b -> f' y <= f' x) -> 0 <= f a -> 0 <= f b -> 0 <= f u.
Proof.
  intros f f' a u b Hu Hd Hm Ha Hb.
  destruct (Rle_dec 0 (f u)) as [|N]; auto. exfalso.
  assert (C : forall x, a <= x <= b -> continuity_pt f x).
  { intros x Hx. apply derivable_continuous_pt. exists (f' x). apply is_derive_Reals. auto. }
  destruct (MVT_gen f a u f') as (c & Hc & E).
  { intros x Hx. rewrite Rmin_left, Rmax_right in Hx; try lra. apply Hd; lra. }
  { intros x Hx. rewrite Rmin_left, Rmax_right in Hx; try lra. apply C; lra. }
  destruct (MVT_gen f u b f') as (d & Hc2 & E2).
  { intros x Hx. rewrite Rmin_left, Rmax_right in Hx; try lra. apply Hd; lra. }
  { intros x Hx. rewrite Rmin_left, Rmax_right in Hx; try lra. apply C; lra. }
  rewrite Rmin_left, Rmax_right in Hc, Hc2 by lra.
  assert (a <> u) by (intros ->; lra). assert (u <> b) by (intros ->; lra).
  pose proof (Hm c d ltac:(lra) ltac:(lra) ltac:(lra)).
  assert (f' c < 0) by (apply Rmult_lt_reg_r with (u - a); lra).
  assert (f' d * (b - u) <= 0) by (apply Ropp_le_cancel; rewrite Ropp_mult_distr_l, Ropp_0; apply Rmult_le_pos; lra).
  lra.
Qed.

(* e^(jx) >= 1 + j (e^x - 1) *)
Lemma bernoulli : forall j x, 1 <= j -> 1 + j * (exp x - 1) <= exp (j * x).
Proof.
  intros j x Hj.
  set (f := fun t => exp (j * t) - 1 - j * (exp t - 1)).
  assert (D : forall t, is_derive f t (j * (exp (j * t) - exp t))).
  { intro t. unfold f. auto_derive; auto. ring. }
  assert (0 <= f x); [| unfold f in *; lra].
  assert (F0 : f 0 = 0) by (unfold f; rewrite Rmult_0_r, exp_0; ring).
  destruct (Rle_dec 0 x) as [H | H].
  - rewrite <- F0. apply grows with (f' := fun t => j * (exp (j * t) - exp t)); auto. intros t Ht.
    apply Rmult_le_pos; [lra |]. assert (t <= j * t) by (pose proof (Rmult_le_compat_r t 1 j); lra).
    destruct H0 as [H0 | H0]; [pose proof (exp_increasing _ _ H0); lra | rewrite <- H0; lra].
  - (* on [x, 0] the function falls *)
    assert (- f x <= - f 0); [| lra].
    apply (grows (fun t => - f t) (fun t => j * (exp t - exp (j * t))) x 0); try lra.
    + intros t Ht. apply is_derive_ext with (f := fun t => opp (f t)); [reflexivity |].
      replace (j * (exp t - exp (j * t))) with (opp (j * (exp (j * t) - exp t))) by (unfold opp; simpl; ring).
      apply (is_derive_opp f t _ (D t)).
    + intros t Ht. apply Rmult_le_pos; [lra |]. assert (j * t <= t) by (pose proof (Rmult_le_compat_neg_l t 1 j); lra).
      destruct H0 as [H0 | H0]; [pose proof (exp_increasing _ _ H0); lra | rewrite H0; lra].
Qed.

Lemma curve_up : forall j x, 1 <= j -> 0 <= x -> 0 <= exp (j * x) - j * j * exp x + (j * j - 1) + j * (j - 1) * x.
Proof.
  intros j x Hj Hx.
  set (f := fun t => exp (j * t) - j * j * exp t + (j * j - 1) + j * (j - 1) * t).
  assert (F0 : f 0 = 0) by (unfold f; rewrite Rmult_0_r, exp_0; ring).
  change (0 <= f x). rewrite <- F0.
  apply grows with (f' := fun t => j * (exp (j * t) - (1 + j * (exp t - 1)))); auto.
  - intros t _. unfold f. auto_derive; auto. ring.
  - intros t _. apply Rmult_le_pos; [lra |]. pose proof (bernoulli j t Hj). lra.
Qed.

Lemma curve_down : forall j w, 1 <= j -> 0 <= w -> 0 <= (j * j - 1) - j * j * (1 + w) * exp (- w) + (1 + j * w) * exp (- (j * w)).
Proof.
  intros j w Hj Hw.
  set (f := fun t => (j * j - 1) - j * j * (1 + t) * exp (- t) + (1 + j * t) * exp (- (j * t))).
  assert (F0 : f 0 = 0) by (unfold f; rewrite Rmult_0_r, Ropp_0, exp_0; ring).
  change (0 <= f w). rewrite <- F0.
  apply grows with (f' := fun t => j * j * t * (exp (- t) - exp (- (j * t)))); auto.
  - intros t _. unfold f. auto_derive; auto. ring.
  - intros t Ht. apply Rmult_le_pos; [repeat apply Rmult_le_pos; lra |].
    assert (H : - (j * t) <= - t) by (pose proof (Rmult_le_compat_r t 1 j); lra).
    destruct H as [H | H]; [pose proof (exp_increasing _ _ H); lra | rewrite H; lra].
Qed.

Section Powers.
Variable k : R.
Hypothesis k_pos : 0 < k.

(* y^(-1/k) *)
Definition falling (y : R) : R := exp (- ln y / k).

Lemma falling_pos : forall y, 0 < falling y.
Proof. intro; apply exp_pos. Qed.

Lemma falling_1 : falling 1 = 1.
Proof. unfold falling. rewrite ln_1. replace (- 0 / k) with 0 by (field; lra). apply exp_0. Qed.

Lemma falling_mult : forall x y, 0 < x -> 0 < y -> falling (x * y) = falling x * falling y.
Proof. intros. unfold falling. rewrite ln_mult by lra. rewrite <- exp_plus. f_equal. field. lra. Qed.

Lemma falling_inverse : forall y, 0 < y -> falling (/ y) * falling y = 1.
Proof.
  intros. rewrite <- falling_mult; [| apply Rinv_0_lt_compat; lra | lra]. rewrite Rinv_l by lra. apply falling_1.
Qed.

Lemma falling_of_inverse : forall y, 0 < y -> falling (/ y) = / falling y.
Proof.
  intros y Hy. pose proof (falling_inverse y Hy) as I. pose proof (falling_pos y) as P.
  apply Rmult_eq_reg_r with (falling y); [| lra]. rewrite I, Rinv_l; lra.
Qed.

Lemma falling_above_tangent : forall y, 0 < y -> 1 - (y - 1) / k <= falling y.
Proof.
  intros y Hy. unfold falling. eapply Rle_trans; [| apply exp_above_line].
  pose proof (ln_below_line y Hy). apply Rmult_le_reg_r with k; auto. field_simplify; lra.
Qed.
End Powers.
