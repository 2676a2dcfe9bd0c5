"""The proofs that a machine checks, as far as they can be looked at without Coq; `make proofs` runs it."""

import re

import pytest

from tests.machinery import proofs

NOTES = {path: path.with_suffix(".md") for path in proofs.sources()}


def test_files_come_after_what_they_need():
    seen = set()
    for path in proofs.sources():
        assert set(re.findall(r"\w+", " ".join(proofs.NEEDS.findall(path.read_text(encoding="utf-8"))))) <= seen
        seen.add(path.stem)
    assert {"removal_lemma", "budget", "above_threshold", "selection", "noise", "interior_point"} <= seen


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
