"""The published test vectors: the library answers with them, and so does the small implementation beside them."""

import ast
import importlib.util
import json
import sys

import pytest

from tests import oracles
from tests.machinery import vectors

FILES = sorted(vectors.FOLDER.glob("*-vectors.json"))
REFERENCE = vectors.FOLDER / "reference.py"


def content(name):
    return json.loads((vectors.FOLDER / f"{name}-vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("vectors_reference", REFERENCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_file_of_each_kind_and_no_other():
    assert {path.name for path in FILES} == {f"{name}-vectors.json" for name in vectors.ANSWERS}
    assert {path.name for path in vectors.FOLDER.iterdir() if path.is_file()} == {path.name for path in FILES} | {
        "reference.py"
    }


@pytest.mark.parametrize("name", vectors.ANSWERS)
def test_the_library_answers_with_the_vectors(name):
    stored = content(name)
    assert (stored["of"], stored["version"]) == (name, 1)
    assert len(stored["vectors"]) >= 5
    for vector in stored["vectors"]:
        assert vector | vectors.ANSWERS[name](vector) == vector


@pytest.mark.parametrize("name", vectors.ANSWERS)
def test_the_questions_are_those_that_are_stored(name):
    asked = [set(vector) for vector in vectors.QUESTIONS[name]()]
    assert [set(vector) - {"factor"} for vector in content(name)["vectors"]] == asked


def test_the_small_implementation_needs_nothing_but_the_standard_library():
    tree = ast.parse(REFERENCE.read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_small_implementation_agrees(path, reference, capsys):
    assert reference.check(path) == []
    assert "0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize("vector", oracles.aes.VECTORS, ids=lambda vector: vector.source)
def test_the_small_implementation_of_aes_meets_the_vectors_of_nist(vector, reference):
    assert reference.aes256_block(reference.aes256_round_keys(vector.key), vector.block) == vector.result


def test_every_cipher_has_words_draws_and_choices(reference):
    for name in ("words", "draws", "choices"):
        assert {vector["cipher"] for vector in content(name)["vectors"]} == set(vectors.ENDS) == set(reference.CIPHERS)


@pytest.mark.parametrize("name", vectors.ANSWERS)
def test_another_answer_is_noticed(name, reference, tmp_path):
    """One answer of each kind, a little off."""
    stored = content(name)
    kinds = {}
    for vector in stored["vectors"]:
        kinds.setdefault(
            (vector.get("law") or vector.get("method") or vector.get("kind"), vector.get("cipher")), vector
        )
    for vector in kinds.values():
        wrong = dict(vector)
        field = {"keys": "key", "words": "words", "draws": "draws", "choices": "chosen"}.get(name)
        if field is None:
            field = next(each for each in ("scale", "sigma", "rho", "found") if each in vectors.ANSWERS[name](vector))
            off = 2 * float.fromhex(vector.get("within", "0x1p-40"))
            wrong[field] = (float.fromhex(vector[field]) * (1 - off)).hex()
        elif field == "key":
            wrong[field] = vector[field][:-1] + "0123456789abcdef"[int(vector[field][-1], 16) ^ 1]
        else:
            last = vector[field][-1]
            wrong[field] = [*vector[field][:-1], f"{int(last, 16) ^ 1:016x}" if name == "words" else last + 1]
        path = tmp_path / "wrong-vectors.json"
        path.write_text(json.dumps(stored | {"vectors": [wrong]}), encoding="utf-8")
        assert len(reference.check(path)) == 1, vector
