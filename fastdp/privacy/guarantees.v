(* Pure DP is concentrated: epsilon-DP costs epsilon tanh(epsilon / 2) of rho, and an epoch of a sparse vector no more. *)

Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
From fastdp Require Import real_functions budget.
Import ListNotations.
Open Scope R_scope.

(* ---- tanh ---- *)
Definition th (x : R) : R := 1 - 2 / (exp (2 * x) + 1).

Lemma th_monotone : forall x y, x <= y -> th x <= th y.
Proof.
  intros x y H. unfold th. pose proof (exp_pos (2 * x)). pose proof (exp_le (2 * x) (2 * y) ltac:(lra)).
  assert (2 / (exp (2 * y) + 1) <= 2 / (exp (2 * x) + 1)); [| lra].
  apply Rmult_le_compat_l; [lra |]. apply Rinv_le_contravar; lra.
Qed.

Lemma th_0 : th 0 = 0.
Proof. unfold th. rewrite Rmult_0_r, exp_0. lra. Qed.

(* tanh (s z) <= s tanh z *)
Lemma th_concave : forall s z, 1 <= s -> 0 <= z -> th (s * z) <= s * th z.
Proof.
  intros s z Hs Hz.
  assert (G : s * th 0 - th (s * 0) <= s * th z - th (s * z)).
  { apply (grows (fun x => s * th x - th (s * x)) (fun x => s * (th (s * x) ^ 2 - th x ^ 2))); auto.
    - intros x _. unfold th. pose proof (exp_pos (2 * x)). pose proof (exp_pos (2 * (s * x))). auto_derive; [repeat split; lra | field; split; lra].
    - intros x Hx. apply Rmult_le_pos; [lra |].
      assert (L : x <= s * x) by (rewrite <- (Rmult_1_l x) at 1; apply Rmult_le_compat_r; lra).
      pose proof (th_monotone x (s * x) L). pose proof (th_monotone 0 x ltac:(lra)) as L0. rewrite th_0 in L0.
      pose proof (pow_incr (th x) (th (s * x)) 2 ltac:(lra)). lra. }
  rewrite Rmult_0_r, th_0, Rmult_0_r, Rminus_0_r in G. lra.
Qed.

Section Pure.
Variables eps alpha : R.
Hypothesis eps_pos : 0 < eps.
Hypothesis alpha_above : 1 < alpha.

(* What randomised response has: the Renyi moment of theorem 3. *)
Definition response : R := (exp (alpha * eps) + exp ((1 - alpha) * eps)) / (1 + exp eps).

Lemma response_is_below : response <= exp (alpha * (alpha - 1) * (eps * th (eps / 2))).
Proof.
  set (f := fun a => a * (a - 1) * (eps * th (eps / 2)) - ln (exp (a * eps) + exp ((1 - a) * eps)) + ln (1 + exp eps)).
  assert (S : forall a, 0 < exp (a * eps) + exp ((1 - a) * eps)) by (intro a; pose proof (exp_pos (a * eps)); pose proof (exp_pos ((1 - a) * eps)); lra).
  assert (G : f 1 <= f alpha).
  { apply (grows f (fun a => eps * ((2 * a - 1) * th (eps / 2) - th ((2 * a - 1) * (eps / 2))))); [lra | |].
    - intros a _. unfold f.
      assert (E : th ((2 * a - 1) * (eps / 2)) = (exp (a * eps) - exp ((1 - a) * eps)) / (exp (a * eps) + exp ((1 - a) * eps))).
      { unfold th. replace (2 * ((2 * a - 1) * (eps / 2))) with (a * eps + - ((1 - a) * eps)) by field. rewrite exp_plus, exp_Ropp.
        pose proof (exp_pos (a * eps)). pose proof (exp_pos ((1 - a) * eps)). field. repeat split; lra. }
      rewrite E. specialize (S a). clear E.
      set (T := th (eps / 2)). clearbody T.
      set (C := ln (1 + exp eps)). clearbody C. pose proof (exp_pos (a * eps)). pose proof (exp_pos ((1 - a) * eps)).
      auto_derive; [repeat split; auto; unfold Rminus in *; lra | unfold Rminus in *; field; lra].
    - intros a Ha. apply Rmult_le_pos; [lra |]. pose proof (th_concave (2 * a - 1) (eps / 2) ltac:(lra) ltac:(lra)). lra. }
  assert (F1 : f 1 = 0).
  { unfold f. rewrite Rmult_1_l. replace ((1 - 1) * eps) with 0 by ring. rewrite exp_0, !Rmult_1_l, (Rplus_comm 1 (exp eps)). ring. }
  rewrite F1 in G. unfold f in G. unfold response. pose proof (exp_pos eps) as P.
  rewrite <- (exp_ln ((exp (alpha * eps) + exp ((1 - alpha) * eps)) / (1 + exp eps))).
  - apply exp_le. unfold Rdiv. rewrite ln_mult; [| apply S | apply Rinv_0_lt_compat; lra]. rewrite ln_Rinv by lra. lra.
  - apply Rdiv_lt_0_compat; [apply S | lra].
Qed.

(* y^alpha lies below its chord over [e^-eps, e^eps]. *)
Lemma below_chord : forall x, - eps <= x <= eps ->
  exp (alpha * x) * (exp eps - exp (- eps)) <= (exp x - exp (- eps)) * exp (alpha * eps) + (exp eps - exp x) * exp (- (alpha * eps)).
Proof.
  intros x Hx.
  set (g := fun y => (y - exp (- eps)) * exp (alpha * eps) + (exp eps - y) * exp (- (alpha * eps)) - exp (alpha * ln y) * (exp eps - exp (- eps))).
  set (g' := fun y => exp (alpha * eps) - exp (- (alpha * eps)) - alpha * exp ((alpha - 1) * ln y) * (exp eps - exp (- eps))).
  pose proof (exp_pos (- eps)) as L. pose proof (exp_le (- eps) eps ltac:(lra)) as W.
  assert (G : 0 <= g (exp x)).
  { apply (above_chord g g' (exp (- eps)) (exp x) (exp eps)).
    - split; apply exp_le; lra.
    - intros y Hy. unfold g, g'. assert (0 < y) by lra.
      replace (exp ((alpha - 1) * ln y)) with (exp (alpha * ln y) / y).
      + auto_derive; [lra | field; lra].
      + replace ((alpha - 1) * ln y) with (alpha * ln y + - ln y) by ring. rewrite exp_plus, exp_Ropp, exp_ln by lra. reflexivity.
    - intros y z Hy Hyz Hz. unfold g'. assert (M : exp ((alpha - 1) * ln y) <= exp ((alpha - 1) * ln z)).
      { apply exp_le. apply Rmult_le_compat_l; [lra |]. destruct Hyz as [Q | ->]; [left; apply ln_increasing; lra | lra]. }
      apply (Rmult_le_compat_l alpha) in M; [| lra]. apply (Rmult_le_compat_r (exp eps - exp (- eps))) in M; lra.
    - unfold g. rewrite ln_exp. replace (alpha * - eps) with (- (alpha * eps)) by ring. right. ring.
    - unfold g. rewrite ln_exp. right. ring. }
  unfold g in G. rewrite ln_exp in G. lra.
Qed.

(* Each output of a release, with its probability on D and on D'. *)
Variable outs : list (R * R).
Fixpoint sum (f : R * R -> R) (l : list (R * R)) : R := match l with [] => 0 | o :: rest => f o + sum f rest end.
Hypothesis pure : List.Forall (fun o => 0 < fst o /\ 0 < snd o /\ fst o <= exp eps * snd o /\ snd o <= exp eps * fst o) outs.
Hypothesis on_D : sum fst outs = 1.
Hypothesis on_D' : sum snd outs = 1.

Lemma each_output : forall p q, 0 < p -> 0 < q -> p <= exp eps * q -> q <= exp eps * p ->
  term alpha p q * (exp eps - exp (- eps)) <= (p - exp (- eps) * q) * exp (alpha * eps) + (exp eps * q - p) * exp (- (alpha * eps)).
Proof.
  intros p q Hp Hq H1 H2.
  assert (Hx : - eps <= ln p - ln q <= eps).
  { split.
    - assert (ln q <= ln (exp eps * p)) by (destruct H2 as [H2 | ->]; [left; apply ln_increasing; auto | lra]).
      rewrite ln_mult, ln_exp in H by (auto; apply exp_pos). lra.
    - assert (ln p <= ln (exp eps * q)) by (destruct H1 as [H1 | ->]; [left; apply ln_increasing; auto | lra]).
      rewrite ln_mult, ln_exp in H by (auto; apply exp_pos). lra. }
  pose proof (below_chord _ Hx) as C.
  assert (T : term alpha p q = q * exp (alpha * (ln p - ln q))).
  { unfold term. rewrite <- (exp_ln q Hq) at 2. rewrite <- exp_plus. f_equal. ring. }
  assert (E : exp (ln p - ln q) = p / q) by (unfold Rminus; rewrite exp_plus, exp_Ropp, !exp_ln by auto; reflexivity).
  rewrite E in C. rewrite T. apply (Rmult_le_compat_l q) in C; [| lra].
  replace (q * ((p / q - exp (- eps)) * exp (alpha * eps) + (exp eps - p / q) * exp (- (alpha * eps))))
    with ((p - exp (- eps) * q) * exp (alpha * eps) + (exp eps * q - p) * exp (- (alpha * eps))) in C by (field; lra). lra.
Qed.

Theorem pure_is_at_most_response : sum (fun o => term alpha (fst o) (snd o)) outs <= response.
Proof.
  pose proof (exp_pos eps) as P. assert (W : 1 < exp eps) by (rewrite <- exp_0; apply exp_increasing; auto).
  assert (V : exp (- eps) = / exp eps) by apply exp_Ropp.
  assert (V1 : / exp eps < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
  assert (G : sum (fun o => term alpha (fst o) (snd o)) outs * (exp eps - exp (- eps)) <=
    (sum fst outs - exp (- eps) * sum snd outs) * exp (alpha * eps) + (exp eps * sum snd outs - sum fst outs) * exp (- (alpha * eps))).
  { clear on_D on_D'. induction pure as [| [p q] rest (Hp & Hq & H1 & H2) F IH]; simpl in *; [lra |].
    pose proof (each_output p q Hp Hq H1 H2). specialize (IH F). lra. }
  rewrite on_D, on_D', !Rmult_1_r in G. apply Rmult_le_reg_r with (exp eps - exp (- eps)); [lra |].
  eapply Rle_trans; [apply G |]. right. unfold response.
  replace ((1 - alpha) * eps) with (eps + - (alpha * eps)) by ring. rewrite exp_plus, V. field. split; lra.
Qed.

(* epsilon-DP is epsilon tanh(epsilon/2)-zCDP. *)
Theorem pure_is_concentrated : sum (fun o => term alpha (fst o) (snd o)) outs <= exp (alpha * (alpha - 1) * (eps * th (eps / 2))).
Proof. eapply Rle_trans; [apply pure_is_at_most_response | apply response_is_below]. Qed.
End Pure.

(* An epoch: its answers are epsilon_0-DP (above_threshold), and in a budget of rhos it is a release of this price. *)
Theorem price_of_an_epoch : forall e0 alpha outs, 0 < e0 -> 1 < alpha ->
  List.Forall (fun o => 0 < chance o /\ 0 < chance' o /\ chance o <= exp e0 * chance' o /\ chance' o <= exp e0 * chance o) outs ->
  over chance outs = 1 -> over chance' outs = 1 ->
  over (fun o => term alpha (chance o) (chance' o)) outs <= exp (alpha * (alpha - 1) * (e0 * th (e0 / 2))).
Proof.
  intros e0 alpha outs He Ha F S S'.
  assert (M : forall f, over (fun o => f (chance o, chance' o)) outs = sum f (map (fun o => (chance o, chance' o)) outs)).
  { intro f. clear. induction outs as [| o rest IH]; simpl; [reflexivity | unfold over in *; simpl in *; rewrite IH; reflexivity]. }
  eapply Rle_trans; [right; apply (M (fun o => term alpha (fst o) (snd o))) |]. apply pure_is_concentrated; auto.
  - clear S S' M. induction F as [| o rest H F IH]; simpl; constructor; auto.
  - etransitivity; [symmetry; apply (M fst) | exact S].
  - etransitivity; [symmetry; apply (M snd) | exact S'].
Qed.
