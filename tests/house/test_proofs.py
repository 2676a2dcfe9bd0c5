"""The proofs that a machine checks, as far as they can be looked at without Coq; `make proofs` runs it."""

import re
from fractions import Fraction
from math import nextafter

import pytest

from fastdp.kernels import elementary
from tests.machinery import proofs, roundings, traces

NOTES = {path: path.with_suffix(".md") for path in proofs.sources()}


def test_files_come_after_what_they_need():
    seen = set()
    for path in proofs.sources():
        needed = set(re.findall(r"\w+", " ".join(proofs.NEEDS.findall(path.read_text(encoding="utf-8")))))
        assert needed - proofs.GENERATED <= seen
        seen.add(path.stem)
    assert {"removal_lemma", "budget", "above_threshold", "selection", "noise", "interior_point", "elementary"} <= seen


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.stem)
def test_no_proof_has_a_gap(path):
    assert not proofs.gaps(path)


@pytest.mark.parametrize("gap", ["Proof. Admitted.", "  admit.", "Axiom a : 1 = 2.", "Parameter p : nat."])
def test_gaps_are_seen_and_words_of_comments_are_not(tmp_path, gap):
    file = tmp_path / "some.v"
    file.write_text(f"(* Nothing is Admitted. *)\nLemma l : True.\n{gap}\n", encoding="utf-8")
    assert proofs.gaps(file)
    file.write_text("(* Nothing is Admitted,\nno Axiom. *)\nLemma l : True.\nProof. auto. Qed.\n", encoding="utf-8")
    assert not proofs.gaps(file)


@pytest.mark.parametrize("path", [path for path, note in NOTES.items() if note.exists()], ids=lambda path: path.stem)
def test_notes_name_their_proofs_and_theorems_that_exist(path):
    text = NOTES[path].read_text(encoding="utf-8")
    section = text[text.index("## Checked by machine") :].split("\n## ")[0]
    assert f"`{path.name}`" in section
    assert "make proofs" in section
    named = set(re.findall(r"`([a-z]{2,}_[a-z_]+)`", section))
    stated = [re.findall(r"(?:Theorem|Lemma) (\w+)", each.read_text(encoding="utf-8")) for each in NOTES]
    there = {name for names in stated for name in names}
    assert named <= there


def test_what_a_theorem_rests_on_is_read_from_what_coq_prints():
    printed = "Axioms:\nClassical_Prop.classic : forall P : Prop, P \\/ ~ P\nsome.lemma\n  : 1 = 2\n"
    assert proofs.rests_on(printed) == {"Classical_Prop.classic", "some.lemma"}
    assert not proofs.rests_on("Closed under the global context\n")


# --- roundings: problems that are made from the code

COEFFICIENTS = sorted(
    name for name in vars(elementary) if re.fullmatch(r"_[AC]\d+(_LOW)?|LN2|LN2_LOW|LOG2_E|ROUNDER", name)
)
BOUNDS = ["LN_FIXED", "LN_SLOPE", "EXP_BOUND", "EXP_ROUGH_BOUND", "LN_PAIR_BOUND"]


def _made(coefficients):
    return "".join(problem.script for problem in roundings.problems(coefficients)) + roundings.definitions(coefficients)


@pytest.mark.parametrize("name", [*COEFFICIENTS, *BOUNDS])
def test_another_number_is_another_problem(name):
    assert len(COEFFICIENTS) == 9 + 12 + 1 + 4
    value = getattr(elementary, name)
    assert _made({}) == _made({name: value}) != _made({name: nextafter(value, 2 * value)})


def test_every_problem_has_hypotheses_and_goals():
    made = roundings.problems({})
    assert len({problem.name for problem in made}) == len(made) == 21
    for problem in made:
        assert re.search(r"\{ .* -> .* \}", problem.script)
    for name in ("ln_one,", "exp_one,", "exp_rough,", "ln_pair,", "to_integer", "from_uint52", "from_uint64"):
        assert any(problem.name.startswith(name) for problem in made)


def test_the_numbers_that_gappa_and_coq_pass_to_each_other_are_on_the_safe_side():
    for name, value in roundings.PIECES.items():
        assert Fraction(roundings.shown(name)) <= value <= Fraction(roundings.given(name))
        assert Fraction(roundings.given(name)) - Fraction(roundings.shown(name)) <= value / 10**10


def _rounded(node, values):
    """A graph with every rounding: each operation is exact in fractions, then a float."""
    if not isinstance(node, traces.Node):
        return Fraction(node)
    if node not in values:
        a = [_rounded(argument, values) for argument in node.arguments]
        exact = {"+": lambda: a[0] + a[1], "-": lambda: a[0] - a[1], "*": lambda: a[0] * a[1], "/": lambda: a[0] / a[1],
                 "fma": lambda: a[0] * a[1] + a[2], "neg": lambda: -a[0]}[node.operation]()  # fmt: skip
        values[node] = Fraction(float(exact))
    return values[node]


def test_graphs_with_every_rounding_are_what_the_kernels_compute():
    graph = roundings.graphs({})
    for i in range(300):
        m = 0.7072 + 0.707 * i / 300  # between sqrt(1/2) and sqrt(2): the exponent is 0
        assert _rounded(graph.logarithm, {graph.m: Fraction(m), graph.exponent: Fraction(2**52 + 1024)}) == Fraction(
            elementary.ln_one(m)
        )
        x = (i - 150) / 150 * 0.34  # no multiple of ln 2 is taken off
        assert _rounded(graph.exponential, {graph.x: Fraction(x)}) == Fraction(elementary.exp_one(x))
        assert _rounded(graph.rough, {graph.x: Fraction(x)}) == Fraction(elementary.exp_rough(x))


def test_what_traces_do_not_understand_they_refuse(monkeypatch):
    with pytest.raises(TypeError, match="not of one number"):
        traces.whole(
            traces.as_pair(traces.Node("sum", (1.0, 2.0)))[0], traces.as_pair(traces.Node("sum", (1.0, 2.0)))[1]
        )
    monkeypatch.setattr(roundings.elementary, "ln_pair", roundings.elementary.exp_one)
    with pytest.raises((TypeError, ValueError)):
        roundings.graphs({})


def test_wrong_numbers_are_tried_of_every_polynomial_and_constant():
    names = {name for each in proofs.WRONG for name in each}
    assert {name.rstrip("0123456789") for name in names} >= {
        "_A",
        "_C",
        "_C3_LOW",
        "LN2",
        "LN2_LOW",
        "LOG2_E",
        "ROUNDER",
    } - {"LN2"}
    for wrong in proofs.WRONG:
        assert all(getattr(elementary, name) != value for name, value in wrong.items())
