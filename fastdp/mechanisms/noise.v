(* Noise: discrete Laplace by inversion, discrete Gaussian by acceptance, and the law of whatever is drawn by rejection. *)

Require Import Reals ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(* ---- rejection: trials that return i with probability r i, and return anything with probability all ---- *)
Theorem rejection : forall r all, 0 < all <= 1 -> is_series (fun trial : nat => (1 - all) ^ trial * r) (r / all).
Proof.
  intros r all H. replace (r / all) with (/ (1 - (1 - all)) * r) by (field; lra).
  apply (is_series_scal_r r). apply is_series_geom. rewrite Rabs_right; lra.
Qed.

Section Laplace.
Variable s : R.
Hypothesis s_pos : 0 < s.
Let q := exp (- / s).

Lemma q_in : 0 < q < 1.
Proof.
  split; [apply exp_pos |]. unfold q. rewrite <- exp_0. apply exp_increasing. pose proof (Rinv_0_lt_compat s s_pos). lra.
Qed.

Lemma q_power : forall k, exp (- INR k / s) = q ^ k.
Proof.
  induction k as [| k IH]; [simpl; replace (- 0 / s) with 0 by (field; lra); apply exp_0 |].
  rewrite S_INR. replace (- (INR k + 1) / s) with (- / s + - INR k / s) by (field; lra). rewrite exp_plus, IH. reflexivity.
Qed.

(* floor(y) >= k, for an integer k: y >= k. The event of lemma 1, floor(-s ln u) >= k, is that u lies in (0, q^k]. *)
Lemma geometric_by_inversion : forall u k, 0 < u -> (INR k <= - s * ln u <-> u <= q ^ k).
Proof.
  intros u k Hu. rewrite <- q_power. split; intro H.
  - rewrite <- (exp_ln u Hu). assert (L : ln u <= - INR k / s) by (apply Rmult_le_reg_l with s; auto; replace (s * (- INR k / s)) with (- INR k) by (field; lra); lra).
    destruct L as [L | ->]; [left; apply exp_increasing; auto | lra].
  - assert (L : ln u <= - INR k / s) by (rewrite <- (ln_exp (- INR k / s)); destruct H as [H | ->]; [left; apply ln_increasing; auto | lra]).
    apply (Rmult_le_compat_l s) in L; [| lra]. replace (s * (- INR k / s)) with (- INR k) in L by (field; lra). lra.
Qed.

(* M = floor(-s ln(u (1 + q) / 2)) is at least k >= 1 for u in (0, 2 q^k / (1 + q)], which is a part of (0, 1]. *)
Lemma laplace_by_inversion : forall u k, 0 < u -> (1 <= k)%nat ->
  (INR k <= - s * ln (u * (1 + q) / 2) <-> u <= 2 * q ^ k / (1 + q)) /\ 2 * q ^ k / (1 + q) <= 1.
Proof.
  intros u k Hu Hk. pose proof q_in as Q. split.
  - assert (Hv : 0 < u * (1 + q) / 2) by (apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra | lra]).
    rewrite (geometric_by_inversion _ k Hv). split; intro H.
    + apply Rmult_le_reg_r with ((1 + q) / 2); [lra |]. replace (2 * q ^ k / (1 + q) * ((1 + q) / 2)) with (q ^ k) by (field; lra). lra.
    + apply (Rmult_le_compat_r ((1 + q) / 2)) in H; [| lra]. replace (2 * q ^ k / (1 + q) * ((1 + q) / 2)) with (q ^ k) in H by (field; lra). lra.
  - assert (q ^ k <= q).
    { destruct k as [| k]; [lia |]. simpl. rewrite <- (Rmult_1_r q) at 3. apply Rmult_le_compat_l; [lra |].
      replace 1 with (1 ^ k) by apply pow1. apply pow_incr; lra. }
    apply Rmult_le_reg_r with (1 + q); [lra |]. replace (2 * q ^ k / (1 + q) * (1 + q)) with (2 * q ^ k) by (field; lra). lra.
Qed.

(* Pr[M >= k] is the length of that part; with a fair sign, ignored at 0, this is the discrete Laplace law. *)
Definition at_least (k : nat) : R := match k with O => 1 | S _ => 2 * q ^ k / (1 + q) end.
Definition law (z : Z) : R :=
  match z with Z0 => at_least 0 - at_least 1 | _ => (at_least (Z.abs_nat z) - at_least (S (Z.abs_nat z))) / 2 end.

Theorem discrete_laplace : forall z, law z = (1 - q) / (1 + q) * q ^ Z.abs_nat z.
Proof.
  pose proof q_in as Q. intros [| p | p]; unfold law, at_least.
  - simpl. field. lra.
  - destruct (Z.abs_nat (Z.pos p)) as [| k] eqn:E; [simpl in E; lia |]. simpl. field. lra.
  - destruct (Z.abs_nat (Z.neg p)) as [| k] eqn:E; [simpl in E; lia |]. simpl. field. lra.
Qed.
End Laplace.

Section Gaussian.
Variables sigma t a : R.   (* any t > 0 and any a; the code takes a whole number a >= 1 *)
Hypothesis sigma_pos : 0 < sigma.
Hypothesis t_pos : 0 < t.
Let x0 := sigma ^ 2 / t.
Let g := exp (sigma ^ 2 / (2 * t ^ 2) - a / t).

(* Lemma 4. R is uniform on (0, a - 1/2 + T]; up to T the proposal is floor(a - t ln(R / T)), beyond it floor(a + T - R). *)
Let q := exp (- / t).
Let T := g / (1 - q).

Lemma ratio_in : 0 < q < 1.
Proof. apply (q_in t t_pos). Qed.

Lemma tail_mass_pos : 0 < T.
Proof. pose proof ratio_in. apply Rdiv_lt_0_compat; [apply exp_pos | lra]. Qed.

(* a + k and above: R in (0, T q^k], which is a part of (0, T]. *)
Lemma tail_by_inversion : forall r k, 0 < r -> (a + INR k <= a - t * ln (r / T) <-> r <= T * q ^ k) /\ T * q ^ k <= T.
Proof.
  intros r k Hr. pose proof tail_mass_pos as HT. pose proof ratio_in as Q. split.
  - assert (Hu : 0 < r / T) by (apply Rdiv_lt_0_compat; auto).
    pose proof (geometric_by_inversion t t_pos (r / T) k Hu) as G. fold q in G.
    assert (E : r / T <= q ^ k <-> r <= T * q ^ k).
    { split; intro H.
      - apply (Rmult_le_compat_l T) in H; [| lra]. replace (T * (r / T)) with r in H by (field; lra). exact H.
      - apply Rmult_le_reg_l with T; auto. replace (T * (r / T)) with r by (field; lra). exact H. }
    rewrite <- E, <- G. split; intro H; lra.
  - rewrite <- (Rmult_1_r T) at 2. apply Rmult_le_compat_l; [lra |]. rewrite <- (pow1 k). apply pow_incr. lra.
Qed.

(* So a + k has the length g q^k ... *)
Theorem tail_is_proposed : forall k, T * q ^ k - T * q ^ S k = g * exp (- INR k / t).
Proof. intro k. pose proof ratio_in. rewrite (q_power t t_pos). fold q. unfold T. simpl. field. lra. Qed.

(* ... and an integer j below a the length 1, of which 1/2 is left at 0. *)
Theorem body_is_proposed : forall r j, j <= a + T - r < j + 1 <-> a + T - j - 1 < r <= a + T - j.
Proof. intros r j. split; lra. Qed.

(* In proportion to what m is proposed with: 1 in the body, g q^(m - a) in the tail, q = e^(-1/t). *)
Definition proposed_body (m : R) : R := 1.
Definition proposed_tail (m : R) : R := g * exp (- (m - a) / t).
Definition accepted (m mu : R) : R := exp (- (m - mu) ^ 2 / (2 * sigma ^ 2)).

Theorem gaussian_body : forall m, proposed_body m * accepted m 0 = exp (- m ^ 2 / (2 * sigma ^ 2)).
Proof. intro m. unfold proposed_body, accepted. rewrite Rmult_1_l. f_equal. field. lra. Qed.

Theorem gaussian_tail : forall m, proposed_tail m * accepted m x0 = exp (- m ^ 2 / (2 * sigma ^ 2)).
Proof. intro m. unfold proposed_tail, accepted, g, x0. rewrite <- !exp_plus. f_equal. field. split; lra. Qed.
End Gaussian.
