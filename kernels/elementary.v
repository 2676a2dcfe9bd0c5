(* Elementary functions: the polynomials of elementary.py are as near to ln and exp as stated, and with what Gappa says of
   roundings the results keep the bounds that elementary.py states. elementary_code is made from elementary.py. *)

Require Import Reals ZArith Lra Lia.
From Interval Require Import Tactic.
From fastdp Require Import elementary_code.
Open Scope R_scope.

(* ---- the constants and the polynomials ---- *)

Theorem ln2_near : Rabs (LN2 - ln 2) <= LN2_REST.
Proof. unfold LN2, LN2_REST. interval with (i_prec 120). Qed.

Theorem ln2_pair_near : Rabs (ln 2 - LN2 - LN2_LOW) <= LN2_PAIR_REST.
Proof. unfold LN2, LN2_LOW, LN2_PAIR_REST. interval with (i_prec 200). Qed.

Theorem ln_truncation : forall z, Rabs z <= 171573 / 1000000 -> Rabs (ln_series z - ln ((1 + z) / (1 - z))) <= LN_REST.
Proof. intros z H. unfold ln_series, LN_REST. interval with (i_taylor z, i_prec 100, i_degree 30, i_bisect z, i_depth 7). Qed.

Theorem exp_truncation : forall r, Rabs r <= REDUCED_MOST -> Rabs (exp_series r / exp r - 1) <= EXP_REST.
Proof.
  intros r. unfold REDUCED_MOST, exp_series, EXP_REST. intro H.
  interval with (i_taylor r, i_prec 100, i_degree 22, i_bisect r, i_depth 7).
Qed.

Theorem exp_rough_truncation : forall r, Rabs r <= REDUCED_MOST -> Rabs (exp_rough_series r / exp r - 1) <= EXP_ROUGH_REST.
Proof.
  intros r. unfold REDUCED_MOST, exp_rough_series, EXP_ROUGH_REST. intro H.
  interval with (i_taylor r, i_prec 100, i_degree 16, i_bisect r, i_depth 7).
Qed.

Theorem pair_truncation : forall r, Rabs r <= 1361 / 1000000 -> Rabs (pair_series r - (exp r - 1)) <= PAIR_SERIES_REST.
Proof.
  intros r H. unfold pair_series, PAIR_SERIES_REST.
  interval with (i_taylor r, i_prec 160, i_degree 14, i_bisect r, i_depth 7).
Qed.

(* ---- theorem 1: ln_one. x = m 2^e; what Gappa proves of the addend s and of the last fma are the two premises ---- *)

Lemma m_of_z : forall m, 0 < m -> (1 + (m - 1) / (2 + (m - 1))) / (1 - (m - 1) / (2 + (m - 1))) = m.
Proof. intros m H. field. lra. Qed.

Theorem ln_one : forall (m s result : R) (e : Z), 707106781 / 1000000000 <= m <= 1414213563 / 1000000000 ->
  (Rabs (ln_series ((m - 1) / (2 + (m - 1))) - ln m) <= LN_REST -> Rabs (s - ln m) <= LN_ADDEND) ->
  (e = 0%Z /\ result = s) \/ Rabs (result - (IZR e * LN2 + s)) <= U * Rabs (IZR e * LN2 + s) ->
  Rabs (result - (IZR e * ln 2 + ln m)) <= U * (LN_FIXED + LN_SLOPE * Rabs (IZR e * ln 2 + ln m)).
Proof.
  intros m s result e Hm Hs Hr.
  assert (Hz : Rabs ((m - 1) / (2 + (m - 1))) <= 171573 / 1000000).
  { replace ((m - 1) / (2 + (m - 1))) with (1 - 2 / (m + 1)) by (field; lra). interval with (i_prec 60). }
  specialize (ln_truncation _ Hz). rewrite m_of_z by lra. intro T. specialize (Hs T). clear T Hz.
  assert (Hl : Rabs (ln m) <= 34658 / 100000) by interval with (i_prec 60, i_bisect m).
  pose proof ln2_near as N. assert (L2 : 6931 / 10000 <= ln 2) by interval with (i_prec 60).
  set (E := IZR e) in *. set (X := E * ln 2 + ln m).
  assert (HE : Rabs E * (6931 / 10000) <= Rabs X + 34658 / 100000).
  { apply Rle_trans with (Rabs (E * ln 2)).
    - rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos |]. rewrite Rabs_right; lra.
    - replace (E * ln 2) with (X + - ln m) by (unfold X; ring). pose proof (Rabs_triang X (- ln m)) as Q. rewrite Rabs_Ropp in Q. lra. }
  assert (HD : Rabs (E * (LN2 - ln 2)) <= Rabs E * LN2_REST).
  { rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos | auto]. }
  assert (HS : Rabs (E * LN2 + s) <= Rabs X + Rabs E * LN2_REST + LN_ADDEND).
  { replace (E * LN2 + s) with (X + (E * (LN2 - ln 2) + (s - ln m))) by (unfold X; ring).
    eapply Rle_trans; [apply Rabs_triang |]. rewrite Rplus_assoc. apply Rplus_le_compat_l.
    eapply Rle_trans; [apply Rabs_triang |]. lra. }
  assert (G : Rabs (result - X) <= U * Rabs (E * LN2 + s) + Rabs E * LN2_REST + LN_ADDEND).
  { destruct Hr as [[-> ->] | Hr].
    - unfold X, E. rewrite !Rmult_0_l, !Rplus_0_l. pose proof (Rabs_pos s) as Ps. unfold U, LN2_REST in *. rewrite Rabs_R0. lra.
    - replace (result - X) with ((result - (E * LN2 + s)) + (E * (LN2 - ln 2) + (s - ln m))) by (unfold X; ring).
      eapply Rle_trans; [apply Rabs_triang |]. rewrite Rplus_assoc. apply Rplus_le_compat; auto.
      eapply Rle_trans; [apply Rabs_triang |]. lra. }
  clear HD. pose proof (Rabs_pos E). pose proof (Rabs_pos X).
  unfold U, LN_FIXED, LN_SLOPE, LN2_REST, LN_ADDEND in *. lra.
Qed.

(* ---- theorems 2 and 3: exp_one and exp_rough. The premises are what Gappa proves of the reduction and of the sum ---- *)

Lemma scaled : forall x r n sum a b, sum = (1 + a) * ((1 + b) * exp r) ->
  sum * powerRZ 2 n = (1 + a) * (1 + b) * exp (r - (x - IZR n * ln 2)) * exp x.
Proof.
  intros x r n sum a b ->. rewrite powerRZ_Rpower by lra. unfold Rpower.
  rewrite !Rmult_assoc, <- !exp_plus. do 3 f_equal. ring.
Qed.

Lemma by_factor : forall f y b, 0 < y -> Rabs (f - 1) <= b -> Rabs (f * y - y) <= b * y.
Proof.
  intros f y b Hy Hf. replace (f * y - y) with ((f - 1) * y) by ring. rewrite Rabs_mult, (Rabs_right y) by lra.
  apply Rmult_le_compat_r; lra.
Qed.

(* A series near to exp, a sum near to the series, an argument near to what is left of x: the result is near to exp x. *)
Lemma by_series : forall (series : R -> R) rest off bound x r sum n, rest < 1 ->
  (forall a b d, Rabs a <= off -> Rabs b <= rest -> Rabs d <= REDUCED_OFF -> Rabs ((1 + a) * (1 + b) * exp d - 1) <= bound) ->
  Rabs (series r / exp r - 1) <= rest -> Rabs (r - (x - IZR n * ln 2)) <= REDUCED_OFF ->
  Rabs (sum / series r - 1) <= off -> Rabs (sum * powerRZ 2 n - exp x) <= bound * exp x.
Proof.
  intros series rest off bound x r sum n Hrest G T Hd Hs. pose proof (exp_pos r) as P.
  assert (series r <> 0).
  { intro Z. rewrite Z in T. replace (0 / exp r - 1) with (- (1)) in T by (field; lra). rewrite Rabs_Ropp, Rabs_R1 in T. lra. }
  rewrite (scaled x r n sum (sum / series r - 1) (series r / exp r - 1)) by (field; lra).
  apply by_factor; [apply exp_pos | apply G; auto].
Qed.

Theorem exp_one : forall x r sum n, Rabs r <= REDUCED_MOST -> Rabs (r - (x - IZR n * ln 2)) <= REDUCED_OFF ->
  Rabs (sum / exp_series r - 1) <= EXP_OFF -> Rabs (sum * powerRZ 2 n - exp x) <= EXP_BOUND * U * exp x.
Proof.
  intros x r sum n Hr. apply (by_series exp_series EXP_REST); [unfold EXP_REST; lra | | apply exp_truncation; auto].
  unfold EXP_OFF, EXP_REST, REDUCED_OFF, EXP_BOUND, U. intros. interval with (i_prec 100).
Qed.

Theorem exp_rough : forall x r sum n, Rabs r <= REDUCED_MOST -> Rabs (r - (x - IZR n * ln 2)) <= REDUCED_OFF ->
  Rabs (sum / exp_rough_series r - 1) <= EXP_ROUGH_OFF -> Rabs (sum * powerRZ 2 n - exp x) <= EXP_ROUGH_BOUND * exp x.
Proof.
  intros x r sum n Hr. apply (by_series exp_rough_series EXP_ROUGH_REST); [unfold EXP_ROUGH_REST; lra | | apply exp_rough_truncation; auto].
  unfold EXP_ROUGH_OFF, EXP_ROUGH_REST, REDUCED_OFF, EXP_ROUGH_BOUND. intros. interval with (i_prec 100).
Qed.

(* ---- theorem 4: ln_pair of x + x_low ---- *)

(* Where it starts: the logarithm of the first float is near that of both. *)
Theorem ln_pair_start : forall x low y, 0 < x -> Rabs low <= U * x -> Rabs (ln x) <= 624 ->
  Rabs (y - ln x) <= U * (LN_FIXED + LN_SLOPE * Rabs (ln x)) -> Rabs (y - ln (x + low)) <= 1 / 2 ^ 43.
Proof.
  intros x low y Hx Hl H Hy.
  assert (Hq : Rabs (low / x) <= U).
  { unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right x) by lra. apply Rmult_le_reg_r with x; auto.
    replace (Rabs low * / x * x) with (Rabs low) by (field; lra). auto. }
  set (q := low / x) in *. replace (x + low) with (x * (1 + q)) by (unfold q; field; lra). clearbody q.
  assert (H1 : 0 < 1 + q) by (unfold U in Hq; interval with (i_prec 60)).
  rewrite ln_mult by auto. assert (HL : Rabs (ln (1 + q)) <= 2 / 9007199254740992) by (unfold U in Hq; interval with (i_prec 120)).
  unfold U, LN_FIXED, LN_SLOPE in *.
  replace (y - (ln x + ln (1 + q))) with ((y - ln x) + - ln (1 + q)) by ring.
  pose proof (Rabs_triang (y - ln x) (- ln (1 + q))) as Q. rewrite Rabs_Ropp in Q.
  pose proof (Rabs_pos (ln x)). lra.
Qed.

Lemma exp_times : forall n x, exp (INR n * x) = exp x ^ n.
Proof.
  induction n as [| n IH]; intro x; [simpl; rewrite Rmult_0_l; apply exp_0 |].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.

(* Doubling eight times is the 256th power. *)
Lemma doubled : forall u, pair_power (u - 1) = u ^ 256.
Proof. intro u. unfold pair_power. ring. Qed.

Lemma power_of_exp : forall r, pair_power (exp r - 1) = exp (256 * r).
Proof. intro r. rewrite doubled, <- exp_times. f_equal. simpl. ring. Qed.

Theorem ln_pair : forall (x y r start power sum result : R) (n : Z), 0 < x ->
  Rabs (y - ln x) <= 1 / 2 ^ 43 ->
  Rabs r <= PAIR_REDUCED_MOST -> Rabs (256 * r - (- y - IZR n * ln 2)) <= PAIR_REDUCED_OFF ->
  Rabs (start - pair_series r) <= PAIR_SERIES_OFF ->
  (forall s, Rabs s <= 137 / 100000 -> Rabs (start - s) <= PAIR_START_OFF -> Rabs (power - pair_power s) <= PAIR_POWER_OFF) ->
  (forall z p, 7 / 10 <= z <= 142 / 100 -> z = x * powerRZ 2 n -> Rabs (power - p) <= PAIR_POWER_OFF ->
    Rabs (z * p - 1) <= PAIR_H_MOST -> Rabs (sum - pair_sum z p) <= PAIR_SUM_OFF) ->
  Rabs (result - (y + sum)) <= PAIR_ADDITION * Rabs (y + sum) ->
  Rabs (result - ln x) <= LN_PAIR_BOUND * (1 + Rabs (ln x)).
Proof.
  intros x y r start power sum result n Hx Hy Hr Hd Hs Hp Hw Hres.
  set (t := (- y - IZR n * ln 2) / 256).
  assert (Ht : Rabs (r - t) <= PAIR_REDUCED_OFF / 256).
  { replace (r - t) with ((256 * r - (- y - IZR n * ln 2)) / 256) by (unfold t; field).
    unfold Rdiv at 1. rewrite Rabs_mult, (Rabs_right (/ 256)) by lra. unfold Rdiv. lra. }
  assert (HS : Rabs (start - (exp t - 1)) <= PAIR_START_OFF).
  { assert (T : Rabs (pair_series r - (exp r - 1)) <= PAIR_SERIES_REST) by (apply pair_truncation; unfold PAIR_REDUCED_MOST in Hr; lra).
    assert (M : Rabs (exp r - exp t) <= 2 * (PAIR_REDUCED_OFF / 256)).
    { set (q := r - t) in *. replace t with (r - q) by (unfold q; ring). clearbody q t.
      replace (exp r - exp (r - q)) with (exp r * (1 - exp (- q))) by (unfold Rminus; rewrite exp_plus; ring).
      unfold PAIR_REDUCED_MOST, PAIR_REDUCED_OFF in *. interval_intro (exp r) with (i_prec 60) as He.
      rewrite Rabs_mult. apply Rle_trans with (11 / 10 * Rabs (1 - exp (- q))).
      - apply Rmult_le_compat_r; [apply Rabs_pos |]. rewrite Rabs_right; lra.
      - apply Rle_trans with (11 / 10 * (18 / 10 * (1 / 316912650057057350374175801344 / 256))); [| lra].
        apply Rmult_le_compat_l; [lra |]. interval with (i_prec 200). }
    replace (start - (exp t - 1)) with ((start - pair_series r) + ((pair_series r - (exp r - 1)) + (exp r - exp t))) by ring.
    eapply Rle_trans; [apply Rabs_triang |]. eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang |].
    unfold PAIR_SERIES_OFF, PAIR_SERIES_REST, PAIR_REDUCED_OFF, PAIR_START_OFF in *. lra. }
  assert (Hs0 : Rabs (exp t - 1) <= 137 / 100000).
  { assert (Rabs t <= 1361 / 1000000).
    { replace t with (r + - (r - t)) by ring. pose proof (Rabs_triang r (- (r - t))) as Q. rewrite Rabs_Ropp in Q.
      unfold PAIR_REDUCED_MOST, PAIR_REDUCED_OFF in *. lra. }
    clearbody t. interval with (i_prec 80). }
  pose proof (Hp _ Hs0 HS) as HP. rewrite power_of_exp in HP.
  set (h := exp (ln x - y) - 1).
  assert (Hz : x * powerRZ 2 n * exp (256 * t) = 1 + h).
  { unfold h, t. rewrite powerRZ_Rpower by lra. unfold Rpower. rewrite <- (exp_ln x Hx) at 1. rewrite <- !exp_plus.
    replace (ln x + IZR n * ln 2 + 256 * ((- y - IZR n * ln 2) / 256)) with (ln x - y) by field. ring. }
  assert (Hh : Rabs h <= PAIR_H_MOST).
  { unfold h. set (g := y - ln x) in *. replace (ln x - y) with (- g) by (unfold g; ring). clearbody g.
    unfold PAIR_H_MOST. interval with (i_prec 120). }
  assert (Ht2 : Rabs (256 * t) <= 34825 / 100000).
  { replace (256 * t) with (256 * r + - (256 * (r - t))) by ring. pose proof (Rabs_triang (256 * r) (- (256 * (r - t)))) as Q.
    rewrite Rabs_Ropp in Q. rewrite !Rabs_mult, (Rabs_right 256) in Q by lra. unfold PAIR_REDUCED_MOST, PAIR_REDUCED_OFF in *.
    lra. }
  assert (Hx2 : 7 / 10 <= x * powerRZ 2 n <= 142 / 100).
  { replace (x * powerRZ 2 n) with ((1 + h) * exp (- (256 * t))).
    - set (T := 256 * t) in *. clearbody T h. unfold PAIR_H_MOST in Hh. interval with (i_prec 80).
    - rewrite <- Hz, Rmult_assoc, <- exp_plus. replace (256 * t + - (256 * t)) with 0 by ring. rewrite exp_0. ring. }
  specialize (Hw _ _ Hx2 eq_refl HP). rewrite Hz in Hw. replace (1 + h - 1) with h in Hw by ring. specialize (Hw Hh).
  unfold pair_sum in Hw. rewrite Hz in Hw.
  assert (HL : Rabs (ln (1 + h) - (h - h * h / 2)) <= 1 / 2 ^ 122) by (clearbody h; unfold PAIR_H_MOST in Hh; interval with (i_prec 200, i_taylor h, i_degree 5)).
  assert (HL2 : ln (1 + h) = ln x - y) by (unfold h; replace (1 + (exp (ln x - y) - 1)) with (exp (ln x - y)) by ring; apply ln_exp).
  rewrite HL2 in HL. clear HL2 Hz Hx2 HP Hp HS Hs0.
  assert (HF : Rabs (y + sum - ln x) <= PAIR_SUM_OFF + 1 / 2 ^ 122).
  { replace (y + sum - ln x) with ((sum - (1 + h + - (1) + (1 + h + - (1)) * - (1 / 2) * (1 + h + - (1)))) + - (ln x - y - (h - h * h / 2))) by field.
    pose proof (Rabs_triang (sum - (1 + h + - (1) + (1 + h + - (1)) * - (1 / 2) * (1 + h + - (1)))) (- (ln x - y - (h - h * h / 2)))) as Q.
    rewrite Rabs_Ropp in Q. lra. }
  pose proof (Rabs_triang (result - (y + sum)) (y + sum - ln x)) as Q1.
  replace (result - (y + sum) + (y + sum - ln x)) with (result - ln x) in Q1 by ring.
  pose proof (Rabs_triang (y + sum - ln x) (ln x)) as Q2. replace (y + sum - ln x + ln x) with (y + sum) in Q2 by ring.
  pose proof (Rabs_pos (ln x)). unfold PAIR_ADDITION, PAIR_SUM_OFF, LN_PAIR_BOUND in *. lra.
Qed.
