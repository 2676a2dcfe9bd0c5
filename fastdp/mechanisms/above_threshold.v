(* AboveThreshold, and the epoch of a run that draws its threshold anew after each True: one positive, no value given with it. *)

Require Import Reals ZArith List Lra Lia.
From fastdp Require Import real_functions countable_sums sparse_vector.
Open Scope R_scope.

(* Theorem 1 of above_threshold.md. A transcript has at most one True; without one only the threshold is paid for, and that is
   the price of an epoch that has not ended. *)
Theorem above_threshold : forall b1 b2 c1 c2 T s t x y, 0 < b1 -> 0 < b2 -> 0 <= c1 -> 0 <= c2 -> (0 <= s)%Z ->
  (positives t <= 1)%nat -> (forall q, In q t -> (Z.abs (on_D q - on_D' q) <= s)%Z) ->
  let p1 := fun z => c1 * exp (- IZR (Z.abs z) / b1) in
  let p2 := fun z => c2 * exp (- IZR (Z.abs z) / b2) in
  let no_value := fun z : Z => 1 * exp (- IZR (Z.abs z) / 1) in
  mass (chance p1 p2 no_value) (transcript T false on_D t) x -> mass (chance p1 p2 no_value) (transcript T false on_D' t) y ->
  x <= exp (IZR s / b1 + 2 * IZR s / b2) * y.
Proof.
  intros b1 b2 c1 c2 T s t x y H1 H2 H3 H4 Hs Ht Hq p1 p2 no_value Hx Hy.
  assert (L1 : laplacian p1 b1) by (apply discrete_laplace; auto).
  assert (L2 : laplacian p2 b2) by (apply discrete_laplace; auto).
  assert (L3 : laplacian no_value 1) by (apply discrete_laplace; lra).
  pose proof (any_direction p1 p2 no_value b1 b2 1 H1 H2 ltac:(lra) L1 L2 L3 T s Hs false t x y Hq Hx Hy) as G.
  eapply Rle_trans; [apply G |]. apply Rmult_le_compat_r.
  - destruct Hy as [U _]. apply U. exists nil. split; [constructor | split; [intros a []; reflexivity | reflexivity]].
  - apply exp_le. apply Rplus_le_compat_l. unfold price. rewrite Rplus_0_r, mult_IZR.
    eapply Rle_trans; [| right; apply Rmult_1_l]. apply Rmult_le_compat_r.
    + apply Rmult_le_pos; [| left; apply Rinv_0_lt_compat; auto]. pose proof (IZR_le 0 s Hs). lra.
    + apply (le_INR _ 1) in Ht. exact Ht.
Qed.

(* With the scales of the code, b1 = (1 + sqrt 2) s / epsilon and b2 = (2 + sqrt 2) s / epsilon, this is epsilon. *)
Theorem scales_of_the_code : forall s epsilon, 0 < s -> 0 < epsilon ->
  s / ((1 + sqrt 2) * s / epsilon) + 2 * s / ((2 + sqrt 2) * s / epsilon) = epsilon.
Proof.
  intros s epsilon Hs He. pose proof (sqrt_lt_R0 2 ltac:(lra)) as R. pose proof (sqrt_sqrt 2 ltac:(lra)) as Q.
  set (r := sqrt 2) in *. clearbody r.
  replace (s / ((1 + r) * s / epsilon) + 2 * s / ((2 + r) * s / epsilon)) with (epsilon * ((2 + r + 2 * (1 + r)) / ((1 + r) * (2 + r)))) by (field; lra).
  replace ((1 + r) * (2 + r)) with (2 + r + 2 * (1 + r)) by lra. field. lra.
Qed.
