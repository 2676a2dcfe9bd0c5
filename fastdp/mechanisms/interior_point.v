(* The loss of a point by rank: how far one record moves it. *)

Require Import ZArith List Lia.
Import ListNotations.
Open Scope Z_scope.

Section Rank.
Variables a b : Z.                (* the quantile a / b *)
Hypothesis fraction : 0 < a < b.

Fixpoint below (z : Z) (xs : list Z) : Z := match xs with [] => 0 | x :: rest => (if x <? z then 1 else 0) + below z rest end.
Fixpoint up_to (z : Z) (xs : list Z) : Z := match xs with [] => 0 | x :: rest => (if x <=? z then 1 else 0) + up_to z rest end.
Definition size (xs : list Z) : Z := Z.of_nat (length xs).

(* In units of 1/b of a rank. *)
Definition left_loss (z : Z) (xs : list Z) : Z := b * below z xs - a * size xs.
Definition right_loss (z : Z) (xs : list Z) : Z := a * size xs - b * up_to z xs.
Definition loss (z : Z) (xs : list Z) : Z := Z.max (left_loss z xs) (right_loss z xs).

Lemma size_cons : forall x xs, size (x :: xs) = 1 + size xs.
Proof. intros; unfold size; simpl length; lia. Qed.

(* Replace-one: by at most a rank in either direction. *)
Theorem replaced : forall x y xs z, - b <= loss z (y :: xs) - loss z (x :: xs) <= b.
Proof.
  intros. unfold loss, left_loss, right_loss. rewrite !size_cons. cbn [below up_to].
  destruct (Z.ltb_spec x z), (Z.ltb_spec y z), (Z.leb_spec x z), (Z.leb_spec y z); rewrite !Z.mul_add_distr_l; lia.
Qed.

(* Add-remove: by at most max(a, b - a) units in either direction. *)
Theorem added : forall x xs z, - Z.max a (b - a) <= loss z (x :: xs) - loss z xs <= Z.max a (b - a).
Proof.
  intros. unfold loss, left_loss, right_loss. rewrite !size_cons. cbn [below up_to].
  destruct (Z.ltb_spec x z), (Z.leb_spec x z); rewrite !Z.mul_add_distr_l; lia.
Qed.

(* A point between two others of the set lies among them: positive for the median's score. *)
Lemma nobody_below : forall z xs, (forall x, In x xs -> z < x) -> up_to z xs = 0.
Proof.
  induction xs as [| x xs IH]; simpl; intro H; [reflexivity |]. pose proof (H x (or_introl eq_refl)).
  destruct (Z.leb_spec x z); [lia |]. rewrite IH; auto.
Qed.
Lemma everybody_below : forall z xs, (forall x, In x xs -> x < z) -> below z xs = size xs.
Proof.
  induction xs as [| x xs IH]; simpl; intro H; [reflexivity |]. pose proof (H x (or_introl eq_refl)).
  rewrite size_cons. destruct (Z.ltb_spec x z); [| lia]. rewrite IH; auto.
Qed.

(* A point that is not interior loses all that can be lost on one side. *)
Theorem outside_right : forall z xs, (forall x, In x xs -> x < z) -> loss z xs >= (b - a) * size xs.
Proof. intros z xs H. unfold loss, left_loss. rewrite everybody_below by auto. nia. Qed.
Theorem outside_left : forall z xs, (forall x, In x xs -> z < x) -> loss z xs >= a * size xs.
Proof. intros z xs H. unfold loss, right_loss. rewrite nobody_below by auto. lia. Qed.

(* The level sets are intervals: the left loss does not fall in z, the right loss does not rise. *)
Lemma below_grows : forall xs z z', z <= z' -> below z xs <= below z' xs.
Proof. induction xs as [| x xs IH]; intros z z' H; simpl; [lia |]. specialize (IH z z' H). destruct (Z.ltb_spec x z), (Z.ltb_spec x z'); lia. Qed.
Lemma up_to_grows : forall xs z z', z <= z' -> up_to z xs <= up_to z' xs.
Proof. induction xs as [| x xs IH]; intros z z' H; simpl; [lia |]. specialize (IH z z' H). destruct (Z.leb_spec x z), (Z.leb_spec x z'); lia. Qed.
Theorem level_sets_are_intervals : forall xs z1 z z2 t, z1 <= z <= z2 -> loss z1 xs <= t -> loss z2 xs <= t -> loss z xs <= t.
Proof.
  intros xs z1 z z2 t H. unfold loss, left_loss, right_loss.
  pose proof (below_grows xs z z2 ltac:(lia)). pose proof (up_to_grows xs z1 z ltac:(lia)). nia.
Qed.
End Rank.
