(* The removal lemma, all four forms: what the note's section "Statement" says, of runs that are trees of rounds. *)

Require Import Reals Lra.
From fastdp Require Import real_functions removal_game removal_general removal_signed.
Open Scope R_scope.

Section Statement.
Variable eta : R.
Hypothesis eta_pos : 0 < eta.
Let k := exp eta - 1.

(* (a) Add-remove, scores that move either way. *)
Theorem general_form : forall g eps, 0 <= eps -> alive (exp (- eta)) (exp eta) same g ->
  delta g 1 (exp eps) <= k / (k + 2) * exp (- eps / k).
Proof. intros g eps He Hg. apply general_add_remove; auto. Qed.

(* (b) Add-remove, scores that move one way. The run with the smaller weights against the other has this delta at every
   epsilon; the other way round there is none from epsilon = eta on. *)
Theorem signed_form : forall g eps, 0 <= eps -> alive 1 (exp eta) same g ->
  delta g 1 (exp eps) <= (1 - exp (- eta)) * exp (- (eps + eta) / k).
Proof. intros g eps He Hg. apply signed_add_remove; auto. Qed.

Theorem signed_form_back : forall g eps, eta <= eps -> alive (/ exp eta) 1 same g -> delta g 1 (exp eps) <= 0.
Proof. intros g eps He Hg. apply (larger_against_smaller eta eta_pos 1); simpl; auto; lra. Qed.

(* (c) Replace-one, scores that move either way. *)
Theorem general_form_replaced : forall g eps, 0 <= eps ->
  alive (exp (- eta)) (exp eta) (alive (exp (- eta)) (exp eta) same) g ->
  let m := k / (k + 2) * exp (- eta / k) in
  delta g 1 (exp eps) <= ((k + 2 * m) / (k + 2) + m / k * eps) * exp (- eps / k).
Proof.
  intros g eps He Hg m. pose proof (general_replace_one eta eta_pos g eps He Hg) as Q.
  unfold falling in Q. rewrite ln_exp in Q. exact Q.
Qed.

(* (d) Replace-one, scores that move one way, where one of the two records raises and the other lowers... *)
Theorem signed_form_replaced : forall g eps, 0 <= eps -> alive 1 (exp eta) (alive 1 (exp eta) same) g ->
  delta g 1 (exp eps) <= (1 - exp (- 2 * eta) + (eps + 2 * eta) * exp (- eta)) * exp (- (eps + 2 * eta) / k).
Proof. intros g eps He Hg. apply signed_replace_one; auto. Qed.

Theorem signed_form_replaced_back : forall g eps, 2 * eta <= eps -> alive (/ exp eta) 1 (alive (/ exp eta) 1 same) g ->
  delta g 1 (exp eps) <= 0.
Proof. intros g eps He Hg. apply (larger_against_smaller eta eta_pos 2); simpl; auto; lra. Qed.

(* ... and where both raise: D against E is pure, E against D' has (b)'s delta at eps - eta. (Both lower: the same, by
   pure_last, without the factor.) P, Q and R are the probabilities of the transcripts under D, E and D'. *)
Theorem signed_form_by_way_of_a_third : forall (T : Type) (P Q R : T -> R) all eps,
  (forall t, List.In t all -> P t <= exp eta * Q t) ->
  total T (fun t => pos (Q t - exp (eps - eta) * R t)) all <= (1 - exp (- eta)) * exp (- (eps - eta + eta) / k) ->
  total T (fun t => pos (P t - exp eps * R t)) all <= k * exp (- eps / k).
Proof.
  intros T P Q R all eps Hp Hq. pose proof (pure_first T P Q R (exp eta) (exp (eps - eta)) _ all ltac:(left; apply exp_pos) Hp Hq) as G.
  rewrite <- exp_plus in G. replace (eta + (eps - eta)) with eps in G by ring.
  replace (eps - eta + eta) with eps in G by ring.
  replace (k * exp (- eps / k)) with (exp eta * ((1 - exp (- eta)) * exp (- eps / k))); [exact G |].
  rewrite exp_Ropp. unfold k. field. apply Rgt_not_eq, exp_pos.
Qed.
End Statement.
