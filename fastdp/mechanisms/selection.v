(* Selection: rejection from bounds and the race of exponentials give the law of the exponential mechanism, which has bounded range. *)

Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

Fixpoint total (w : list R) : R := match w with [] => 0 | x :: rest => x + total rest end.

Lemma total_not_negative : forall w, List.Forall (fun x => 0 < x) w -> 0 <= total w.
Proof. intros w F. induction F; simpl; lra. Qed.

Lemma total_pos : forall w, w <> [] -> List.Forall (fun x => 0 < x) w -> 0 < total w.
Proof.
  intros [| x rest] H F; [congruence |]. inversion F as [| ? ? Hx Hr]; subst. simpl. clear H F.
  pose proof (total_not_negative rest Hr). lra.
Qed.

(* ---- the buckets: a candidate is proposed in proportion to its bound, and kept with probability weight / bound ---- *)
Section Buckets.
Variable cs : list (R * R).   (* weight and bound of each candidate *)
Hypothesis some : cs <> [].
Hypothesis bounds : List.Forall (fun c => 0 < fst c <= snd c) cs.
Let W := total (map fst cs).
Variable room : R.            (* what is drawn from: at least the sum of the bounds *)
Hypothesis room_enough : total (map snd cs) <= room.

Definition one_trial (c : R * R) : R := snd c / room * (fst c / snd c).

Lemma W_in : 0 < W <= total (map snd cs).
Proof.
  unfold W. destruct cs as [| c rest]; [congruence |]. clear some room_enough W.
  assert (G : forall l, List.Forall (fun c : R * R => 0 < fst c <= snd c) l -> 0 <= total (map fst l) <= total (map snd l)).
  { induction l as [| d l IH]; simpl; intro F; [lra |]. inversion F as [| ? ? H1 H2]; subst. specialize (IH H2). lra. }
  inversion bounds as [| ? ? H1 H2]; subst. specialize (G rest H2). simpl. lra.
Qed.

(* The candidate of the first trial that keeps one: its trials add up to weight / sum of weights. *)
Theorem buckets : forall c, In c cs -> is_series (fun trial : nat => (1 - W / room) ^ trial * one_trial c) (fst c / W).
Proof.
  intros c Hc. pose proof W_in as HW. rewrite Forall_forall in bounds. specialize (bounds c Hc).
  assert (Hr : 0 < room) by lra.
  assert (HWr : 0 < W / room <= 1).
  { split; [apply Rdiv_lt_0_compat; lra |]. apply Rmult_le_reg_r with room; auto. replace (W / room * room) with W by (field; lra). lra. }
  replace (one_trial c) with (fst c / room) by (unfold one_trial; field; lra).
  replace (fst c / W) with (/ (1 - (1 - W / room)) * (fst c / room)) by (field; lra).
  apply (is_series_scal_r (fst c / room)). apply is_series_geom. rewrite Rabs_right; lra.
Qed.
End Buckets.

(* ---- the race: candidate i arrives at an exponential time of rate w ---- *)
Section Race.
Variable w : R.
Variable others : list R.
Hypothesis w_pos : 0 < w.
Hypothesis others_pos : List.Forall (fun x => 0 < x) others.
Let W := w + total others.

(* The others have not arrived at time t. *)
Fixpoint none_by (t : R) (rates : list R) : R := match rates with [] => 1 | x :: rest => exp (- (x * t)) * none_by t rest end.

Lemma none_by_total : forall t rates, none_by t rates = exp (- (total rates * t)).
Proof.
  induction rates as [| x rest IH]; simpl; [rewrite Rmult_0_l, Ropp_0, exp_0; reflexivity |].
  rewrite IH, <- exp_plus. f_equal. ring.
Qed.

Lemma W_above : 0 < W.
Proof. unfold W. pose proof (total_not_negative others others_pos). lra. Qed.

Lemma first_until : forall T, is_RInt (fun t => w * exp (- (w * t)) * none_by t others) 0 T (w / W * (1 - exp (- (W * T)))).
Proof.
  intro T. pose proof W_above as HW.
  apply is_RInt_ext with (fun t => w * exp (- (W * t))).
  { intros t _. rewrite none_by_total, Rmult_assoc, <- exp_plus. f_equal. f_equal. unfold W. ring. }
  replace (w / W * (1 - exp (- (W * T)))) with (minus (- (w / W) * exp (- (W * T))) (- (w / W) * exp (- (W * 0)))).
  - apply (is_RInt_derive (fun t => - (w / W) * exp (- (W * t)))).
    + intros t _. auto_derive; auto. field. lra.
    + intros t _. apply (ex_derive_continuous (fun t => w * exp (- (W * t)))). auto_derive; auto.
  - unfold minus, plus, opp; simpl. rewrite Rmult_0_r, Ropp_0, exp_0. ring.
Qed.

(* First of all, at whatever time: with probability w / W. *)
Theorem race : is_lim (fun T => w / W * (1 - exp (- (W * T)))) p_infty (w / W).
Proof.
  pose proof W_above as HW.
  replace (Finite (w / W)) with (Rbar_mult (w / W) (Rbar_minus 1 0)) by (simpl; f_equal; ring).
  apply is_lim_scal_l. apply is_lim_minus with 1 0; [apply is_lim_const | | reflexivity].
  apply is_lim_comp with m_infty; [apply is_lim_exp_m | | exists 0; intros; discriminate].
  replace m_infty with (Rbar_opp (Rbar_mult W p_infty)).
  - apply is_lim_opp. apply is_lim_scal_l. apply is_lim_id.
  - simpl. destruct (Rle_dec 0 W) as [H | H]; [| lra]. destruct (Rle_lt_or_eq_dec 0 W H) as [H2 | H2]; [reflexivity | lra].
Qed.

(* The times that are left when somebody has arrived are exponential with the same rates. *)
Theorem no_memory : forall rate s t, exp (- (rate * (s + t))) / exp (- (rate * s)) = exp (- (rate * t)).
Proof. intros. unfold Rdiv. rewrite <- exp_Ropp, <- exp_plus. f_equal. ring. Qed.
End Race.

(* ---- bounded range: weights that change by factors between lo and hi move no probability by more than hi / lo ---- *)
Theorem bounded_range : forall (w w' : list R) lo hi x x', 0 < lo -> lo <= hi ->
  Forall2 (fun v v' => 0 < v /\ lo * v <= v' <= hi * v) w w' -> 0 < x -> lo * x <= x' <= hi * x -> 0 < total w ->
  lo / hi * (x / total w) <= x' / total w' <= hi / lo * (x / total w).
Proof.
  intros w w' lo hi x x' Hlo Hhi F Hx Hx' Hw.
  assert (G : lo * total w <= total w' <= hi * total w).
  { clear Hx Hx' Hw. induction F as [| v v' r r' [Hv Hv'] F IH]; simpl; lra. }
  assert (Hw' : 0 < total w') by (pose proof (Rmult_lt_0_compat lo (total w) Hlo Hw); lra).
  split; apply Rmult_le_reg_r with (total w'); auto.
  - replace (x' / total w' * total w') with x' by (field; lra).
    apply Rle_trans with (lo * x); [| lra].
    replace (lo / hi * (x / total w) * total w') with (lo * x * (total w' / (hi * total w))) by (field; lra).
    rewrite <- (Rmult_1_r (lo * x)) at 2. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra |].
    apply Rmult_le_reg_r with (hi * total w); [apply Rmult_lt_0_compat; lra |].
    replace (total w' / (hi * total w) * (hi * total w)) with (total w') by (field; lra). lra.
  - replace (x' / total w' * total w') with x' by (field; lra).
    apply Rle_trans with (hi * x); [lra |].
    replace (hi / lo * (x / total w) * total w') with (hi * x * (total w' / (lo * total w))) by (field; lra).
    rewrite <- (Rmult_1_r (hi * x)) at 1. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra |].
    apply Rmult_le_reg_r with (lo * total w); [apply Rmult_lt_0_compat; lra |].
    replace (total w' / (lo * total w) * (lo * total w)) with (total w') by (field; lra). lra.
Qed.
