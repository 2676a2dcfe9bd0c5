(* Sums over a countable set, of weights that are not negative: the least upper bound of the sums over finite parts. *)

Require Import Reals ZArith List Lra Lia.
Import ListNotations.
Open Scope R_scope.

Fixpoint total {A : Type} (w : A -> R) (l : list A) : R := match l with [] => 0 | a :: rest => w a + total w rest end.

Definition part {A : Type} (w : A -> R) (E : A -> Prop) (x : R) : Prop :=
  exists l, NoDup l /\ (forall a, In a l -> E a) /\ x = total w l.

(* The mass of an event E under the weights w is x. *)
Definition mass {A : Type} (w : A -> R) (E : A -> Prop) (x : R) : Prop := is_lub (part w E) x.

Lemma total_le : forall {A : Type} (w v : A -> R) l, (forall a, In a l -> w a <= v a) -> total w l <= total v l.
Proof.
  induction l as [| a rest IH]; simpl; intro H; [lra |]. apply Rplus_le_compat; [apply H; auto | apply IH; auto].
Qed.

Lemma total_scale : forall {A : Type} (w : A -> R) k l, total (fun a => k * w a) l = k * total w l.
Proof. induction l as [| a rest IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma total_map : forall {A B : Type} (w : B -> R) (f : A -> B) l, total w (map f l) = total (fun a => w (f a)) l.
Proof. induction l as [| a rest IH]; simpl; [reflexivity | rewrite IH; reflexivity]. Qed.

(* If a one-to-one map takes the event E into F, and no weight grows by more than a factor in the way back, then so for the masses. *)
Theorem moved : forall {A B : Type} (w : A -> R) (v : B -> R) (E : A -> Prop) (F : B -> Prop) (f : A -> B) k x y,
  0 <= k -> (forall a b, E a -> E b -> f a = f b -> a = b) -> (forall a, E a -> F (f a)) -> (forall a, E a -> w a <= k * v (f a)) ->
  mass w E x -> mass v F y -> x <= k * y.
Proof.
  intros A B w v E F f k x y Hk Inj Into Le [_ Lub] [Up _]. apply Lub. intros s (l & ND & In_ & ->).
  apply Rle_trans with (total (fun a => k * v (f a)) l); [apply total_le; auto |].
  rewrite (total_scale (fun a => v (f a))). apply Rmult_le_compat_l; auto. rewrite <- total_map. apply Up.
  exists (map f l). split; [| split; auto].
  - clear - ND Inj In_. induction ND as [| a l H ND IH]; simpl; constructor.
    + rewrite in_map_iff. intros (b & E1 & E2). apply H. rewrite <- (Inj b a); auto; [apply In_; right; auto | apply In_; left; auto].
    + apply IH. intros b Hb. apply In_; right; auto.
  - intros b Hb. apply in_map_iff in Hb. destruct Hb as (a & <- & Ha). auto.
Qed.
