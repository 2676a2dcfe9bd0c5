(* AboveThreshold and SparseVector: one threshold for several positives, each with a value of its own. *)

Require Import Reals ZArith List Lra Lia.
From fastdp Require Import real_functions countable_sums.
Import ListNotations.
Open Scope R_scope.

(* A noise of which moving by d costs at most e^(|d| / b). *)
Definition laplacian (p : Z -> R) (b : R) : Prop :=
  forall z d, 0 <= p z /\ p z <= exp (IZR (Z.abs d) / b) * p (z + d)%Z.

Lemma discrete_laplace : forall b c, 0 < b -> 0 <= c -> laplacian (fun z => c * exp (- IZR (Z.abs z) / b)) b.
Proof.
  intros b c Hb Hc z d. split; [apply Rmult_le_pos; [auto | left; apply exp_pos] |].
  replace (exp (IZR (Z.abs d) / b) * (c * exp (- IZR (Z.abs (z + d)) / b)))
    with (c * exp (IZR (Z.abs d) / b + - IZR (Z.abs (z + d)) / b)) by (rewrite exp_plus; ring).
  apply Rmult_le_compat_l; auto.
  assert (H : - IZR (Z.abs z) / b <= IZR (Z.abs d) / b + - IZR (Z.abs (z + d)) / b).
  { replace (IZR (Z.abs d) / b + - IZR (Z.abs (z + d)) / b) with ((IZR (Z.abs d) - IZR (Z.abs (z + d))) / b) by (field; lra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto |].
    assert (Z.abs (z + d) <= Z.abs z + Z.abs d)%Z by lia. apply IZR_le in H. rewrite plus_IZR in H. lra. }
  destruct H as [H | ->]; [left; apply exp_increasing; auto | lra].
Qed.

Section Sparse.
Variables p1 p2 p3 : Z -> R.   (* the noises of the threshold, of the queries, of the values *)
Variables b1 b2 b3 : R.
Hypothesis b1_pos : 0 < b1.
Hypothesis b2_pos : 0 < b2.
Hypothesis b3_pos : 0 < b3.
Hypothesis noise1 : laplacian p1 b1.
Hypothesis noise2 : laplacian p2 b2.
Hypothesis noise3 : laplacian p3 b3.
Variable T s : Z.              (* the threshold, and how far one record moves a value *)
Hypothesis s_pos : (0 <= s)%Z.
Variable valued : bool.        (* whether a value is given with each True *)

(* A query as it was answered: whether the answer was True, the value given with it, and the query's value on D and on D'. *)
Record query := { answer : bool; given : Z; on_D : Z; on_D' : Z }.

(* The noises of a run: that of the threshold, and for each query that of the comparison and that of the value. *)
Definition run : Type := Z * list (Z * Z).

Fixpoint weight (zs : list (Z * Z)) : R := match zs with [] => 1 | (z, y) :: rest => p2 z * p3 y * weight rest end.
(* What a positive pays: its comparison, and its value if one is given. *)
Definition price (m : Z) : R := IZR m / b2 + (if valued then IZR s / b3 else 0).

Definition chance (r : run) : R := p1 (fst r) * weight (snd r).

Fixpoint gives (value : query -> Z) (t : list query) (theta : Z) (zs : list (Z * Z)) : Prop :=
  match t, zs with
  | [], [] => True
  | q :: t', (z, y) :: zs' =>
      (if answer q then (value q + z >= T + theta)%Z /\ (if valued then (value q + y = given q)%Z else True) else (value q + z < T + theta)%Z)
      /\ gives value t' theta zs'
  | _, _ => False
  end.
Definition transcript (value : query -> Z) (t : list query) (r : run) : Prop := gives value t (fst r) (snd r).

Fixpoint positives (t : list query) : nat := match t with [] => O | q :: rest => if answer q then S (positives rest) else positives rest end.

(* The threshold moves by e, the noises of positives by what keeps them above it. *)
Fixpoint shift (e : Z) (t : list query) (zs : list (Z * Z)) : list (Z * Z) :=
  match t, zs with
  | q :: t', (z, y) :: zs' =>
      (if answer q then (z + (e + (on_D q - on_D' q)), if valued then y + (on_D q - on_D' q) else y)%Z else (z, y)) :: shift e t' zs'
  | _, _ => zs
  end.

Lemma shift_one_to_one : forall e t zs zs', length zs = length zs' -> shift e t zs = shift e t zs' -> zs = zs'.
Proof.
  induction t as [| q t IH]; intros [| [z y] zs] [| [z' y'] zs'] L H; simpl in *; try discriminate; auto.
  injection L as L. destruct (answer q), valued; injection H; intros H1 H2 H3; f_equal; auto; f_equal; lia.
Qed.

Lemma gives_length : forall value t theta zs, gives value t theta zs -> length zs = length t.
Proof. induction t as [| q t IH]; intros theta [| [z y] zs] H; simpl in *; try tauto. f_equal. eapply IH. apply H. Qed.

Lemma weight_pos : forall zs, 0 <= weight zs.
Proof.
  induction zs as [| [z y] rest IH]; simpl; [lra |]. apply Rmult_le_pos; auto.
  apply Rmult_le_pos; [apply (noise2 z 0%Z) | apply (noise3 y 0%Z)].
Qed.

Section Mapped.
Variables e m : Z.   (* how far the threshold moves, and the noise of a positive at most *)
Hypothesis e_in : (0 <= e <= s)%Z.
Hypothesis m_pos : (0 <= m)%Z.

Lemma shift_gives : forall t, (forall q, In q t -> (on_D' q - on_D q <= e)%Z) ->
  forall theta zs, gives on_D t theta zs -> gives on_D' t (theta + e) (shift e t zs).
Proof.
  induction t as [| q t IH]; intros Hq theta [| [z y] zs] H; simpl in *; try tauto.
  destruct H as [H1 H2]. pose proof (Hq q (or_introl eq_refl)) as Hq0.
  destruct (answer q), valued; (split; [| apply IH; auto]); lia.
Qed.

Lemma shift_weight : forall t, (forall q, In q t -> (Z.abs (e + (on_D q - on_D' q)) <= m)%Z /\ (Z.abs (on_D q - on_D' q) <= s)%Z) ->
  forall zs, length zs = length t ->
  weight zs <= exp (INR (positives t) * price m) * weight (shift e t zs).
Proof.
  assert (M : 0 <= IZR m) by (apply IZR_le; auto). assert (Ss : 0 <= IZR s) by (apply IZR_le; auto).
  induction t as [| q t IH]; intros Hq [| [z y] zs] L; simpl in *; try discriminate.
  { rewrite Rmult_0_l, exp_0. lra. }
  injection L as L. destruct (Hq q (or_introl eq_refl)) as [Hz Hy]. specialize (IH (fun q H => Hq q (or_intror H)) zs L).
  pose proof (weight_pos zs) as W0. pose proof (weight_pos (shift e t zs)) as W1.
  destruct (answer q); simpl weight.
  - assert (A : p2 z <= exp (IZR m / b2) * p2 (z + (e + (on_D q - on_D' q)))%Z).
    { eapply Rle_trans; [apply (noise2 z (e + (on_D q - on_D' q))%Z) |]. apply Rmult_le_compat_r; [apply (noise2 _ 0%Z) |].
      apply exp_le, Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto | apply IZR_le; auto]. }
    set (v := if valued then IZR s / b3 else 0). set (y' := if valued then (y + (on_D q - on_D' q))%Z else y).
    assert (B : p3 y <= exp v * p3 y').
    { unfold v, y'. destruct valued; [| rewrite exp_0; lra]. eapply Rle_trans; [apply (noise3 y (on_D q - on_D' q)%Z) |]. apply Rmult_le_compat_r; [apply (noise3 _ 0%Z) |].
      apply exp_le, Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto | apply IZR_le; auto]. }
    rewrite S_INR.
    replace ((INR (positives t) + 1) * price m) with (IZR m / b2 + (v + INR (positives t) * price m)) by (unfold price, v; ring).
    rewrite !exp_plus.
    replace (exp (IZR m / b2) * (exp v * exp (INR (positives t) * price m)) *
        (p2 (z + (e + (on_D q - on_D' q)))%Z * p3 y' * weight (shift e t zs)))
      with ((exp (IZR m / b2) * p2 (z + (e + (on_D q - on_D' q)))%Z) * (exp v * p3 y') *
            (exp (INR (positives t) * price m) * weight (shift e t zs))) by ring.
    apply Rmult_le_compat; auto.
    + apply Rmult_le_pos; [apply (noise2 z 0%Z) | apply (noise3 y 0%Z)].
    + apply Rmult_le_compat; auto; [apply (noise2 z 0%Z) | apply (noise3 y 0%Z)].
  - replace (exp (INR (positives t) * price m) * (p2 z * p3 y * weight (shift e t zs)))
      with (p2 z * p3 y * (exp (INR (positives t) * price m) * weight (shift e t zs))) by ring.
    apply Rmult_le_compat_l; auto. apply Rmult_le_pos; [apply (noise2 z 0%Z) | apply (noise3 y 0%Z)].
Qed.

Lemma mapped : forall t x y,
  (forall q, In q t -> (on_D' q - on_D q <= e)%Z /\ (Z.abs (e + (on_D q - on_D' q)) <= m)%Z /\ (Z.abs (on_D q - on_D' q) <= s)%Z) ->
  mass chance (transcript on_D t) x -> mass chance (transcript on_D' t) y ->
  x <= exp (IZR s / b1 + INR (positives t) * price m) * y.
Proof.
  intros t x y Hq. apply moved with (f := fun r : run => ((fst r + e)%Z, shift e t (snd r))).
  - left; apply exp_pos.
  - intros [th zs] [th' zs'] H H' E. simpl in E. injection E as E1 E2. f_equal; [lia |].
    apply (shift_one_to_one e t); auto. unfold transcript in *; simpl in *.
    rewrite (gives_length _ _ _ _ H), (gives_length _ _ _ _ H'). reflexivity.
  - intros [th zs] H. unfold transcript in *; simpl in *. apply shift_gives; auto. intros q I. apply (Hq q I).
  - intros [th zs] H. unfold transcript in H; unfold chance; simpl in *. pose proof (gives_length _ _ _ _ H) as L.
    rewrite exp_plus.
    replace (exp (IZR s / b1) * exp (INR (positives t) * price m) * (p1 (th + e)%Z * weight (shift e t zs)))
      with ((exp (IZR s / b1) * p1 (th + e)%Z) * (exp (INR (positives t) * price m) * weight (shift e t zs))) by ring.
    apply Rmult_le_compat; [apply (noise1 th 0%Z) | apply weight_pos | | apply shift_weight; auto; intros q I; apply (Hq q I)].
    eapply Rle_trans; [apply (noise1 th e) |]. apply Rmult_le_compat_r; [apply (noise1 _ 0%Z) |].
    apply exp_le, Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto | apply IZR_le; lia].
Qed.
End Mapped.

(* Theorem 1 of sparse_vector.md: c s (m/b2 + 1/b3) + s/b1, m = 2, or 1 where all values move the same way. *)
Theorem any_direction : forall t x y, (forall q, In q t -> (Z.abs (on_D q - on_D' q) <= s)%Z) ->
  mass chance (transcript on_D t) x -> mass chance (transcript on_D' t) y ->
  x <= exp (IZR s / b1 + INR (positives t) * price (2 * s)%Z) * y.
Proof.
  intros t x y Hq Hx Hy.
  apply (mapped s (2 * s)%Z) with (t := t); auto; try lia. intros q I. specialize (Hq q I). lia.
Qed.

Theorem all_rise : forall t x y, (forall q, In q t -> (on_D q <= on_D' q <= on_D q + s)%Z) ->
  mass chance (transcript on_D t) x -> mass chance (transcript on_D' t) y ->
  x <= exp (IZR s / b1 + INR (positives t) * price s) * y.
Proof.
  intros t x y Hq Hx Hy. apply (mapped s s) with (t := t); auto; try lia. intros q I. specialize (Hq q I). lia.
Qed.

Theorem all_fall : forall t x y, (forall q, In q t -> (on_D q - s <= on_D' q <= on_D q)%Z) ->
  mass chance (transcript on_D t) x -> mass chance (transcript on_D' t) y ->
  x <= exp (IZR s / b1 + INR (positives t) * price s) * y.
Proof.
  intros t x y Hq Hx Hy. apply (mapped 0%Z s) with (t := t); auto; try lia. intros q I. specialize (Hq q I). lia.
Qed.
End Sparse.
