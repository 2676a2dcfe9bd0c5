(* A budget's filter: releases chosen one after the other, each by whoever has seen all outputs so far, are together what
   their total promises, if on every path the charges stay within the total. *)

Require Import Reals List Lra.
From fastdp Require Import real_functions.
Import ListNotations.
Open Scope R_scope.

(* What comes next: nothing, or a release with its charge, each of its outputs with the probabilities on D and on D', and what
   follows once it was seen. *)
Inductive protocol : Type :=
| Halt : protocol
| Ask : R -> R -> list (R * R * protocol) -> protocol.

Section Induction.
Variable P : protocol -> Prop.
Hypothesis halt : P Halt.
Hypothesis ask : forall e d outs, Forall (fun o => P (snd o)) outs -> P (Ask e d outs).
Fixpoint protocol_induction (t : protocol) : P t :=
  match t with
  | Halt => halt
  | Ask e d outs =>
      ask e d outs
        ((fix every (rest : list (R * R * protocol)) : Forall (fun o => P (snd o)) rest :=
            match rest with [] => Forall_nil _ | o :: more => Forall_cons o (protocol_induction (snd o)) (every more) end) outs)
  end.
End Induction.

Definition over (f : R * R * protocol -> R) (outs : list (R * R * protocol)) : R :=
  fold_right (fun o sum => f o + sum) 0 outs.
Definition chance (o : R * R * protocol) : R := fst (fst o).
Definition chance' (o : R * R * protocol) : R := snd (fst o).

(* ---- the sum over all transcripts of (P - e^eps P')_+ ---- *)
Fixpoint apart (t : protocol) (a b : R) : R :=
  match t with
  | Halt => pos (a - b)
  | Ask _ _ outs =>
      (fix go (rest : list (R * R * protocol)) : R :=
         match rest with [] => 0 | (p, p', next) :: more => apart next (a * p) (b * p') + go more end) outs
  end.

(* Every release is (e, d)-DP for this pair, and the charges on every path are within (eps, delta). *)
Fixpoint within (eps delta : R) (t : protocol) : Prop :=
  match t with
  | Halt => 0 <= eps /\ 0 <= delta
  | Ask e d outs =>
      over chance outs = 1 /\ over (fun o => pos (chance o - exp e * chance' o)) outs <= d /\ 0 <= d /\ d <= delta /\
      (fix each (rest : list (R * R * protocol)) : Prop :=
         match rest with [] => True | (p, p', next) :: more => 0 <= p /\ 0 <= p' /\ within (eps - e) (delta - d) next /\ each more end) outs
  end.

Lemma excess : forall t eps delta a b, within eps delta t -> 0 <= a -> 0 <= b ->
  apart t a (exp eps * b) <= pos (a - b) + a * delta.
Proof.
  induction t as [| e d outs IH] using protocol_induction; intros eps delta a b H Ha Hb.
  { destruct H as [He Hd]. simpl. pose proof (Rmult_le_pos a delta Ha Hd). pose proof (pos_0 (a - b)).
    apply pos_least; [| lra]. pose proof (pos_self (a - b)).
    assert (1 <= exp eps) by (rewrite <- exp_0; destruct He as [He | <-]; [left; apply exp_increasing; auto | right; reflexivity]).
    pose proof (Rmult_le_compat_r b 1 (exp eps) Hb H2). lra. }
  destruct H as (S1 & Sd & Hd & Hdd & H).
  assert (G : apart (Ask e d outs) a (exp eps * b) <=
     pos (a - b) * over chance outs + a * over (fun o => pos (chance o - exp e * chance' o)) outs + (delta - d) * a * over chance outs).
  { clear S1 Sd. simpl. induction outs as [| [[p p'] next] more IHo]; simpl; [lra |].
    destruct H as (Hp & Hp' & Hn & Hm). inversion IH as [| ? ? I1 I2]; subst. specialize (IHo I2 Hm). simpl in I1.
    pose proof (exp_pos e) as Ee.
    assert (I : apart next (a * p) (exp (eps - e) * (exp e * (b * p'))) <= pos (a * p - exp e * (b * p')) + a * p * (delta - d)).
    { apply I1; auto; [apply Rmult_le_pos; auto |]. apply Rmult_le_pos; [lra | apply Rmult_le_pos; auto]. }
    replace (exp (eps - e) * (exp e * (b * p'))) with (exp eps * b * p') in I.
    2: { replace (exp eps) with (exp (eps - e) * exp e) by (rewrite <- exp_plus; f_equal; ring). ring. }
    assert (X : pos (a * p - exp e * (b * p')) <= pos (a - b) * p + a * pos (p - exp e * p')).
    { pose proof (pos_0 (a - b)) as P0. pose proof (pos_0 (p - exp e * p')) as P1. pose proof (pos_self (a - b)) as P2. pose proof (pos_self (p - exp e * p')) as P3.
      pose proof (Rmult_le_pos _ _ P0 Hp). pose proof (Rmult_le_pos _ _ Ha P1).
      apply pos_least; [| lra].
      destruct (Rle_dec b a) as [L | L].
      - (* a p - e^e b p' <= (a - b) p + b (p - e^e p') *)
        pose proof (Rmult_le_compat_r p _ _ Hp P2). pose proof (Rmult_le_compat_l b _ _ Hb P3).
        pose proof (Rmult_le_compat_r _ b a P1 ltac:(lra)). lra.
      - pose proof (Rmult_le_compat_l a _ _ Ha P3). assert (a * (exp e * p') <= exp e * (b * p')).
        { replace (exp e * (b * p')) with (b * (exp e * p')) by ring. apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | lra]. }
        lra. }
    unfold chance, chance' in *; simpl in *. lra. }
  rewrite S1 in G. pose proof (Rmult_le_compat_l a _ _ Ha Sd). lra.
Qed.

(* Epsilons and deltas add up, whatever is asked in between. *)
Theorem filter_of_epsilons_and_deltas : forall t eps delta, within eps delta t -> apart t 1 (exp eps) <= delta.
Proof.
  intros t eps delta H. pose proof (excess t eps delta 1 1 H ltac:(lra) ltac:(lra)) as E.
  rewrite Rmult_1_r in E. unfold pos at 1 in E. rewrite Rmax_left in E by lra. lra.
Qed.

(* ---- rhos: the Renyi moment of order alpha of all transcripts ---- *)
Section Renyi.
Variable alpha : R.
Hypothesis alpha_above : 1 < alpha.

(* p^alpha p'^(1 - alpha), of probabilities that are not 0 *)
Definition term (p p' : R) : R := exp (alpha * ln p + (1 - alpha) * ln p').

Fixpoint moment (t : protocol) : R :=
  match t with
  | Halt => 1
  | Ask _ _ outs =>
      (fix go (rest : list (R * R * protocol)) : R :=
         match rest with [] => 0 | (p, p', next) :: more => term p p' * moment next + go more end) outs
  end.

(* The first number of each release is its rho; the charges on every path are within the total. *)
Fixpoint concentrated (rho : R) (t : protocol) : Prop :=
  match t with
  | Halt => 0 <= rho
  | Ask r _ outs =>
      over (fun o => term (chance o) (chance' o)) outs <= exp (alpha * (alpha - 1) * r) /\
      (fix each (rest : list (R * R * protocol)) : Prop :=
         match rest with [] => True | (p, p', next) :: more => 0 < p /\ 0 < p' /\ concentrated (rho - r) next /\ each more end) outs
  end.

Theorem filter_of_rhos : forall t rho, concentrated rho t -> moment t <= exp (alpha * (alpha - 1) * rho).
Proof.
  induction t as [| r d outs IH] using protocol_induction; intros rho H.
  { simpl in *. apply Rle_trans with (exp 0); [rewrite exp_0; lra |]. assert (L : 0 <= alpha * (alpha - 1) * rho) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | auto]).
    destruct L as [L | <-]; [left; apply exp_increasing; auto | right; reflexivity]. }
  destruct H as (S1 & H).
  assert (G : moment (Ask r d outs) <= exp (alpha * (alpha - 1) * (rho - r)) * over (fun o => term (chance o) (chance' o)) outs).
  { clear S1. simpl. induction outs as [| [[p p'] next] more IHo]; simpl; [lra |].
    destruct H as (Hp & Hp' & Hn & Hm). inversion IH as [| ? ? I1 I2]; subst. specialize (IHo I2 Hm). simpl in I1. specialize (I1 _ Hn).
    unfold chance, chance' in *; simpl in *. apply (Rmult_le_compat_l (term p p')) in I1; [| left; apply exp_pos]. lra. }
  apply (Rmult_le_compat_l (exp (alpha * (alpha - 1) * (rho - r)))) in S1; [| left; apply exp_pos].
  rewrite <- exp_plus in S1. replace (alpha * (alpha - 1) * (rho - r) + alpha * (alpha - 1) * r) with (alpha * (alpha - 1) * rho) in S1 by ring. lra.
Qed.
End Renyi.
