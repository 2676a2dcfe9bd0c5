(* The game of removal_lemma.md: a run against its neighbour, round by round, and a potential that bounds it. *)

Require Import Reals Lra Psatz List.
From fastdp Require Import real_functions.
Import ListNotations.
Open Scope R_scope.

(* A run that ends, or a round: its candidates, each with its weight under the first set of records, that under the
   second, and what follows when it is released. *)
Inductive game : Type :=
| Stop : game
| Round : list (R * R * game) -> game.

(* All weights of a round are divided by their sums: what is drawn are probabilities. *)
Definition weight (c : R * R * game) : R := fst (fst c).
Definition weight' (c : R * R * game) : R := snd (fst c).

Fixpoint sum (f : R * R * game -> R) (cs : list (R * R * game)) : R :=
  match cs with [] => 0 | c :: rest => f c + sum f rest end.

(* The sum over all transcripts of (a P - b P')_+: with a = 1, b = e^epsilon the delta of this epsilon. *)
Fixpoint delta (g : game) (a b : R) {struct g} : R :=
  match g with
  | Stop => pos (a - b)
  | Round cs =>
      (fix over (rest : list (R * R * game)) : R :=
         match rest with
         | [] => 0
         | (w, w', g') :: more => delta g' (a * (w / sum weight cs)) (b * (w' / sum weight' cs)) + over more
         end) cs
  end.

(* A record in which the two sets differ is alive: a candidate outside of its removal set has the same weight in both runs,
   and the record lives on; one of the set has weights within lo .. hi of each other, and what follows is of the kind "after". *)
Fixpoint alive (lo hi : R) (after : game -> Prop) (g : game) {struct g} : Prop :=
  match g with
  | Stop => True
  | Round cs =>
      cs <> [] /\
      (fix each (rest : list (R * R * game)) : Prop :=
         match rest with
         | [] => True
         | (w, w', g') :: more =>
             0 < w /\ ((w' = w /\ alive lo hi after g') \/ (lo * w <= w' <= hi * w /\ after g')) /\ each more
         end) cs
  end.

(* No record is left in which the two sets differ. *)
Fixpoint same (g : game) : Prop :=
  match g with
  | Stop => True
  | Round cs =>
      cs <> [] /\
      (fix each (rest : list (R * R * game)) : Prop :=
         match rest with [] => True | (w, w', g') :: more => 0 < w /\ w' = w /\ same g' /\ each more end) cs
  end.

Section Induction.
Variable P : game -> Prop.
Hypothesis at_stop : P Stop.
Hypothesis at_round : forall cs, Forall (fun c => P (snd c)) cs -> P (Round cs).
Fixpoint game_induction (g : game) : P g :=
  match g with
  | Stop => at_stop
  | Round cs =>
      at_round cs
        ((fix every (rest : list (R * R * game)) : Forall (fun c => P (snd c)) rest :=
            match rest with
            | [] => Forall_nil _
            | c :: more => Forall_cons c (game_induction (snd c)) (every more)
            end) cs)
  end.
End Induction.

(* After a hit on the last record both runs are the same process: nothing is added. *)
Lemma delta_same : forall g, same g -> forall a b, delta g a b = pos (a - b).
Proof.
  induction g as [| cs IH] using game_induction; intros Hs a b; [reflexivity |].
  destruct Hs as [Hne Hs].
  assert (Hz : forall rest, (fix each (rest : list (R * R * game)) : Prop :=
         match rest with [] => True | (w, w', g') :: more => 0 < w /\ w' = w /\ same g' /\ each more end) rest ->
       sum weight' rest = sum weight rest /\ 0 <= sum weight rest /\ (rest <> [] -> 0 < sum weight rest)).
  { induction rest as [| [[w w'] g'] more IHr]; simpl; intro H; [split; [lra | split; [lra | congruence]] |].
    destruct H as (H1 & -> & _ & H3). destruct (IHr H3) as (E & N & _). unfold weight, weight' in *; simpl.
    repeat split; try intros _; lra. }
  destruct (Hz cs Hs) as (E & _ & P). specialize (P Hne). simpl. rewrite E. set (Z := sum weight cs) in *.
  transitivity (sum weight cs / Z * pos (a - b)); [| fold Z; field; lra].
  clear Hne E. clearbody Z. clear Hz. induction cs as [| [[w w'] g'] more IHc]; [simpl; lra |].
  destruct Hs as (H1 & -> & H2 & H3). inversion IH as [| ? ? I1 I2]; subst.
  rewrite (IHc I2 H3). simpl in I1. rewrite (I1 H2). simpl. unfold weight at 2; simpl.
  replace (a * (w / Z) - b * (w / Z)) with (w / Z * (a - b)) by lra.
  rewrite pos_times; [field; lra |]. apply Rlt_le, Rdiv_lt_0_compat; lra.
Qed.

Section Potential.
Variables lo hi : R.
Hypothesis lo_pos : 0 < lo.
Hypothesis lo_hi : lo < hi.
Variable after : game -> Prop.
Variables L W : R -> R.
Hypothesis below_after : forall g a b, after g -> 0 < a -> 0 < b -> delta g a b <= a * L (b / a).
Hypothesis at_stop : forall y, 0 < y -> pos (1 - y) <= W y.
Hypothesis chord : forall z y, lo <= z <= hi -> 0 < y ->
  L (z * y) <= (z - lo) / (hi - lo) * L (hi * y) + (hi - z) / (hi - lo) * L (lo * y).
Hypothesis one_round : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y ->
  p1 * L (hi * y) + p2 * L (lo * y) + q * W y <= W ((p1 * hi + p2 * lo + q) * y).

Theorem potential : forall g, alive lo hi after g -> forall a b, 0 < a -> 0 < b -> delta g a b <= a * W (b / a).
Proof.
  induction g as [| cs IH] using game_induction; intros Hg a b Ha Hb.
  { simpl. replace (a - b) with (a * (1 - b / a)) by (field; lra). rewrite pos_times by lra.
    apply Rmult_le_compat_l; [lra |]. apply at_stop. apply Rdiv_lt_0_compat; lra. }
  destruct Hg as [Hne Hg]. simpl.
  assert (Split : forall al be, 0 < al -> 0 < be -> forall rest,
     Forall (fun c => alive lo hi after (snd c) -> forall a b, 0 < a -> 0 < b -> delta (snd c) a b <= a * W (b / a)) rest ->
     (fix each (rest : list (R * R * game)) : Prop :=
         match rest with
         | [] => True
         | (w, w', g') :: more =>
             0 < w /\ ((w' = w /\ alive lo hi after g') \/ (lo * w <= w' <= hi * w /\ after g')) /\ each more
         end) rest ->
     exists p1 p2 q, 0 <= p1 /\ 0 <= p2 /\ 0 <= q /\ p1 + p2 + q = sum weight rest /\ p1 * hi + p2 * lo + q = sum weight' rest /\
     (fix over (rest : list (R * R * game)) : R :=
         match rest with
         | [] => 0
         | (w, w', g') :: more => delta g' (al * w) (be * w') + over more
         end) rest <= al * (p1 * L (hi * (be / al)) + p2 * L (lo * (be / al)) + q * W (be / al))).
  { intros al be Hal Hbe. induction rest as [| [[w w'] g'] more IHr]; intros IF Hr.
    { exists 0, 0, 0. simpl. lra. }
    inversion IF as [| ? ? I1 I2]; subst. destruct Hr as (Hw & Hc & Hm).
    destruct (IHr I2 Hm) as (p1 & p2 & q & A1 & A2 & A3 & A4 & A5 & A6). simpl in I1.
    assert (Hy : 0 < be / al) by (apply Rdiv_lt_0_compat; lra).
    assert (Haw : 0 < al * w) by (apply Rmult_lt_0_compat; lra).
    destruct Hc as [[-> Hc] | [[Hl Hh] Hc]].
    - exists p1, p2, (q + w). simpl. unfold weight, weight' in *; simpl in *.
      split; [lra |]; split; [lra |]; split; [lra |]; split; [lra |]; split; [lra |].
      assert (Hbw : 0 < be * w) by (apply Rmult_lt_0_compat; lra).
      pose proof (I1 Hc (al * w) (be * w) Haw Hbw) as H.
      replace (be * w / (al * w)) with (be / al) in H by (field; lra). lra.
    - assert (Hw' : 0 < w') by (pose proof (Rmult_lt_0_compat lo w lo_pos Hw); lra).
      assert (Hbw : 0 < be * w') by (apply Rmult_lt_0_compat; lra).
      pose proof (below_after g' (al * w) (be * w') Hc Haw Hbw) as H.
      replace (be * w' / (al * w)) with (w' / w * (be / al)) in H by (field; lra).
      assert (Hz : lo <= w' / w <= hi).
      { split; apply Rmult_le_reg_r with w; auto; replace (w' / w * w) with w' by (field; lra); lra. }
      pose proof (chord (w' / w) (be / al) Hz Hy) as C.
      exists (p1 + w * ((w' / w - lo) / (hi - lo))), (p2 + w * ((hi - w' / w) / (hi - lo))), q.
      assert (0 <= w * ((w' / w - lo) / (hi - lo))).
      { apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; [lra |]. left; apply Rinv_0_lt_compat; lra. }
      assert (0 <= w * ((hi - w' / w) / (hi - lo))).
      { apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; [lra |]. left; apply Rinv_0_lt_compat; lra. }
      simpl. unfold weight, weight' in *; simpl in *.
      split; [lra |]; split; [lra |]; split; [lra |]; split; [rewrite <- A4; field; lra |];
      split; [rewrite <- A5; field; lra |].
      { apply (Rmult_le_compat_l (al * w)) in C; [| lra].
        eapply Rle_trans; [apply Rplus_le_compat; [eapply Rle_trans; [apply H | apply C] | apply A6] |].
        right. ring. } }
  set (Z := sum weight cs) in *. set (Z' := sum weight' cs) in *.
  assert (Zpos : 0 < Z /\ 0 < Z').
  { unfold Z, Z'. clear Split IH Z Z'. revert Hg. destruct cs as [| c more]; [congruence |]. intro Hg. clear Hne.
    revert c Hg. induction more as [| d more IHm]; intros [[w w'] g'] Hg.
    - simpl. unfold weight, weight'; simpl. destruct Hg as (Hw & [[-> _] | [[Hl _] _]] & _); [lra |].
      pose proof (Rmult_lt_0_compat lo w lo_pos Hw). lra.
    - destruct Hg as (Hw & Hc & Hm). destruct (IHm d Hm) as [B1 B2]. simpl in *. unfold weight at 1, weight' at 1; simpl.
      destruct Hc as [[-> _] | [[Hl _] _]]; [lra |]. pose proof (Rmult_lt_0_compat lo w lo_pos Hw). lra. }
  destruct Zpos as [Zp Zp'].
  assert (Hal : 0 < a / Z) by (apply Rdiv_lt_0_compat; lra).
  assert (Hbe : 0 < b / Z') by (apply Rdiv_lt_0_compat; lra).
  destruct (Split (a / Z) (b / Z') Hal Hbe cs IH Hg) as (p1 & p2 & q & A1 & A2 & A3 & A4 & A5 & A6).
  fold Z in A4. fold Z' in A5.
  eapply Rle_trans; [| eapply Rle_trans; [apply A6 |]].
  - right. clear. clearbody Z Z'. induction cs as [| [[w w'] g'] more IHc]; [reflexivity |].
    rewrite IHc. f_equal. f_equal; unfold Rdiv; ring.
  - clear A6. set (y := b / Z' / (a / Z)).
    assert (Hy : 0 < y) by (apply Rdiv_lt_0_compat; lra).
    pose proof (one_round (p1 / Z) (p2 / Z) (q / Z) y) as H.
    assert (I : 0 <= / Z) by (left; apply Rinv_0_lt_compat; lra).
    specialize (H ltac:(apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra)).
    specialize (H ltac:(rewrite <- A4; field; rewrite A4; lra) Hy).
    replace (p1 / Z * hi + p2 / Z * lo + q / Z) with (Z' / Z) in H by (rewrite <- A5; field; lra).
    replace (Z' / Z * y) with (b / a) in H by (unfold y; field; lra).
    apply (Rmult_le_compat_l a) in H; [| lra]. eapply Rle_trans; [| apply H]. right. field. lra.
Qed.
End Potential.

(* A function that lies above a line through each of its points lies below its chords. *)
Lemma chord_of_lines : forall (L : R -> R) lo hi, 0 < lo -> lo < hi ->
  (forall x, 0 < x -> exists slope, forall v, 0 < v -> L x + slope * (v - x) <= L v) ->
  forall z y, lo <= z <= hi -> 0 < y ->
  L (z * y) <= (z - lo) / (hi - lo) * L (hi * y) + (hi - z) / (hi - lo) * L (lo * y).
Proof.
  intros L lo hi Hl Hh S z y Hz Hy.
  destruct (S (z * y) ltac:(apply Rmult_lt_0_compat; lra)) as [s Hs].
  pose proof (Hs (hi * y) ltac:(apply Rmult_lt_0_compat; lra)) as H1.
  pose proof (Hs (lo * y) ltac:(apply Rmult_lt_0_compat; lra)) as H2.
  assert (I : 0 < / (hi - lo)) by (apply Rinv_0_lt_compat; lra).
  apply (Rmult_le_compat_l ((z - lo) / (hi - lo))) in H1; [| apply Rmult_le_pos; lra].
  apply (Rmult_le_compat_l ((hi - z) / (hi - lo))) in H2; [| apply Rmult_le_pos; lra].
  eapply Rle_trans; [| apply Rplus_le_compat; [apply H1 | apply H2]]. right. field. lra.
Qed.

Lemma pos_lines : forall x, 0 < x -> exists slope, forall v, 0 < v -> pos (1 - x) + slope * (v - x) <= pos (1 - v).
Proof.
  intros x Hx. destruct (Rle_dec x 1) as [H | H].
  - exists (-1). intros v Hv. unfold pos at 1. rewrite Rmax_right by lra. pose proof (pos_self (1 - v)). lra.
  - exists 0. intros v Hv. unfold pos at 1. rewrite Rmax_left by lra. pose proof (pos_0 (1 - v)). lra.
Qed.

Lemma pos_turn : forall y, 0 < y -> pos (1 - y) = 1 - y + y * pos (1 - / y).
Proof.
  intros y Hy. rewrite <- pos_times by lra. replace (y * (1 - / y)) with (y - 1) by (field; lra).
  unfold pos. unfold Rmax. destruct (Rle_dec 0 (1 - y)), (Rle_dec 0 (y - 1)); lra.
Qed.

Section Turn.
Variable U : R.
Hypothesis U_above : 1 < U.
Variables L W : R -> R.
Hypothesis L_turn : forall y, 0 < y -> L y = 1 - y + y * L (/ y).
Hypothesis W_turn : forall y, 0 < y -> W y = 1 - y + y * W (/ y).
Hypothesis up : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y ->
  1 <= (p1 * U + p2 * / U + q) * y ->
  p1 * L (U * y) + p2 * L (/ U * y) + q * W y <= W ((p1 * U + p2 * / U + q) * y).

Lemma turn : forall p1 p2 q y, 0 <= p1 -> 0 <= p2 -> 0 <= q -> p1 + p2 + q = 1 -> 0 < y ->
  p1 * L (U * y) + p2 * L (/ U * y) + q * W y <= W ((p1 * U + p2 * / U + q) * y).
Proof.
  intros p1 p2 q y H1 H2 H3 Hs Hy. set (f := p1 * U + p2 * / U + q).
  destruct (Rle_dec 1 (f * y)) as [Hf | Hf]; [apply up; auto |].
  assert (IU : 0 < / U) by (apply Rinv_0_lt_compat; lra).
  assert (Hfp : 0 < f).
  { unfold f. assert (/ U <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    pose proof (Rmult_le_compat_l p1 (/ U) U H1 ltac:(lra)).
    pose proof (Rmult_le_compat_l q (/ U) 1 H3 ltac:(lra)).
    assert (/ U = p1 * / U + p2 * / U + q * / U) by (rewrite <- !Rmult_plus_distr_r, Hs; ring). lra. }
  assert (If : 0 < / f) by (apply Rinv_0_lt_compat; lra).
  assert (Iy : 0 < / y) by (apply Rinv_0_lt_compat; lra).
  assert (Hfy : 0 < f * y) by (apply Rmult_lt_0_compat; lra).
  pose proof (up (p2 * / U * / f) (p1 * U * / f) (q * / f) (/ y)) as H.
  specialize (H ltac:(repeat apply Rmult_le_pos; lra) ltac:(repeat apply Rmult_le_pos; lra) ltac:(apply Rmult_le_pos; lra)).
  assert (E1 : p2 * / U * / f + p1 * U * / f + q * / f = 1).
  { replace (p2 * / U * / f + p1 * U * / f + q * / f) with (f * / f) by (unfold f; ring). apply Rinv_r; lra. }
  assert (E2 : p2 * / U * / f * U + p1 * U * / f * / U + q * / f = / f).
  { replace (p2 * / U * / f * U + p1 * U * / f * / U + q * / f) with ((p1 + p2 + q) * / f).
    - rewrite Hs; ring.
    - field. split; lra. }
  rewrite E2 in H. specialize (H E1 Iy).
  assert (E3 : / f * / y = / (f * y)) by (field; lra). rewrite E3 in H.
  assert (1 <= / (f * y)) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  specialize (H H0). clear H0.
  rewrite (L_turn (U * y)) by (apply Rmult_lt_0_compat; lra).
  rewrite (L_turn (/ U * y)) by (apply Rmult_lt_0_compat; lra).
  rewrite (W_turn y) by lra. rewrite (W_turn (f * y)) by lra.
  replace (/ (U * y)) with (/ U * / y) by (field; lra).
  replace (/ (/ U * y)) with (U * / y) by (field; lra).
  apply (Rmult_le_compat_l (f * y)) in H; [| lra].
  replace (p1 * (1 - U * y + U * y * L (/ U * / y)) + p2 * (1 - / U * y + / U * y * L (U * / y)) + q * (1 - y + y * W (/ y)))
    with (1 - f * y + f * y * (p2 * / U * / f * L (U * / y) + p1 * U * / f * L (/ U * / y) + q * / f * W (/ y))).
  - lra.
  - replace 1 with (p1 + p2 + q) at 1 by lra. unfold f. field. unfold f in Hfp. 
    split; [lra |]. intro Z. apply (Rmult_lt_compat_r U) in Hfp; [| lra]. field_simplify in Hfp; lra.
Qed.
End Turn.
