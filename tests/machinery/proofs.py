"""The proofs that a machine checks: `python -m tests.machinery.proofs`.

Every `.v` beside a proof note is compiled by Coq, in the order of what it needs, in a folder of its own. A proof with a
gap does not pass: no file says Admitted, admit or Axiom, and what each theorem rests on in the end, as Coq lists it, is
what Coq's real numbers and its integers of the machine rest on. What roundings do to the elementary functions is proved
by Gappa, from problems that are made from the code (`roundings.py`); code with a wrong coefficient must not pass.
Wants Coq with coquelicot and interval, and Gappa (on Debian `coq libcoq-coquelicot libcoq-interval gappa`).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

from fastdp.kernels import elementary
from tests.machinery import roundings

ROOT = Path(__file__).parents[2]
PACKAGES = "coq libcoq-coquelicot libcoq-interval gappa"
FOLDERS = ("fastdp", "kernels")
GAPS = re.compile(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard Checking)\b")
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
GENERATED = {"elementary_code"}  # made from the code, in the folder where proofs are checked
NEEDS = re.compile(r"From fastdp Require Import ([\w ]+)\.")
THEOREM = re.compile(r"^Theorem (\w+)", re.MULTILINE)
# What the standard library's real numbers are built on; PrimInt63 and Uint63 are integers of 63 bits, with which Coq's
# kernel computes as the machine does, and what is known of them.
INTEGERS = ("PrimInt63.", "Uint63.")
OF_THE_REALS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
    "ProofIrrelevance.proof_irrelevance",
    "Eqdep.Eq_rect_eq.eq_rect_eq",
    "ClassicalEpsilon.constructive_indefinite_description",
}


def sources() -> list[Path]:
    """The proofs, each after those that it needs."""
    found = {path.stem: path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.v"))}
    needs = {name: _needs(path) for name, path in found.items()}
    return [found[name] for name in TopologicalSorter(needs).static_order()]


def _needs(path: Path) -> list[str]:
    names = [name for group in NEEDS.findall(path.read_text(encoding="utf-8")) for name in group.split()]
    return [name for name in names if name not in GENERATED]


def theorems(path: Path) -> list[str]:
    """The names of its theorems; lemmas are steps towards them."""
    return THEOREM.findall(path.read_text(encoding="utf-8"))


def gaps(path: Path) -> list[str]:
    """Words that leave something unproved."""
    return GAPS.findall(COMMENT.sub(" ", path.read_text(encoding="utf-8")))


def _coq(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    quiet = ["-w", "-ambiguous-paths,-typechecker"]
    command = ["coqc", *quiet, "-R", ".", "fastdp", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def rests_on(printed: str) -> set[str]:
    """The axioms that `Print Assumptions` lists: names at the beginning of lines."""
    names = {line.split()[0] for line in printed.splitlines() if line and line[0].isalpha() and line != "Axioms:"}
    return {name for name in names if name != "Closed" and not name.startswith(INTEGERS)}


def check(folder: Path) -> list[str]:
    """What is wrong, if anything; prints what was checked."""
    wrong = []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wrong += _define(folder, {})
    paths = sources()
    for path in paths:
        wrong += [f"{path.relative_to(ROOT)} says {word}" for word in gaps(path)]
        shutil.copy(path, folder)
        start = time.perf_counter()
        ran = _coq([path.name], folder)
        if ran.returncode:
            return [*wrong, f"{path.relative_to(ROOT)}: {ran.stdout}{ran.stderr}"]
        some = len(theorems(path))
        print(f"{path.relative_to(ROOT)}: {some} theorems, {time.perf_counter() - start:.1f} s", flush=True)
    for path in paths:
        together = ", ".join(f"@{name}" for name in theorems(path)) or "I"  # one walk through what they share
        lines = [
            f"From fastdp Require Import {path.stem}.",
            f"Definition all := ({together}).",
            "Print Assumptions all.",
        ]
        (folder / "assumptions.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
        ran = _coq(["assumptions.v"], folder)
        more = rests_on(ran.stdout) - OF_THE_REALS
        if ran.returncode or more:
            wrong.append(f"{path.relative_to(ROOT)} rests on more than the real numbers: {more or ran.stderr}")
    return wrong


# --- roundings


def _define(folder: Path, coefficients: Mapping[str, float]) -> list[str]:
    (folder / "elementary_code.v").write_text(roundings.definitions(coefficients), encoding="utf-8")
    ran = _coq(["elementary_code.v"], folder)
    return [f"elementary_code.v: {ran.stderr}"] if ran.returncode else []


def unproved(coefficients: Mapping[str, float]) -> list[str]:
    """The problems of roundings that Gappa does not prove, for the code with these coefficients."""
    return [problem.name for problem in roundings.problems(coefficients) if not _gappa(problem.script)]


def _gappa(script: str) -> bool:
    ran = subprocess.run(["gappa"], input=script, capture_output=True, text=True, check=False)
    return ran.returncode == 0 and "Error" not in ran.stderr


def bounds_hold(folder: Path, coefficients: Mapping[str, float]) -> bool:
    """Whether Coq proves the bounds of the code with these coefficients, from what Gappa proves."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "kernels" / "elementary.v", folder)
    return not _define(folder, coefficients) and not _coq(["elementary.v"], folder).returncode


# One of each polynomial and of each constant, wrong by what its bound has no room for.
WRONG = (
    {"_A8": elementary._A8 * 0.9},
    {"_C13": elementary._C13 * 0.9},
    {"_C8": elementary._C8 * 0.9},
    {"_C3_LOW": 0.0},
    {"LN2": elementary.LN2 - 2.0**-53},
    {"LN2_LOW": elementary.LN2_LOW * (1 + 2.0**-50)},
    {"LOG2_E": 1.44},
    {"ROUNDER": elementary.ROUNDER / 2**10},
    {"EXP_BOUND": 1.0},
)


def check_roundings(folder: Path) -> list[str]:
    """What Gappa does not prove; and wrong code that passes."""
    start = time.perf_counter()
    wrong = [f"{name}: not proved by Gappa" for name in unproved({})]
    some = len(roundings.problems({}))
    print(f"kernels/elementary.py: {some} problems of roundings, {time.perf_counter() - start:.1f} s", flush=True)
    for coefficients in WRONG:
        name = ", ".join(coefficients)
        if not unproved(coefficients) and bounds_hold(folder / "wrong", coefficients):
            wrong.append(f"{name}: another value breaks no proof")
    print(
        f"kernels/elementary.py: {len(WRONG)} wrong coefficients tried, {time.perf_counter() - start:.1f} s", flush=True
    )
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.proofs", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "proofs")
    folder = parser.parse_args(arguments).folder
    if missing := [name for name in ("coqc", "gappa") if shutil.which(name) is None]:
        print(f"{' and '.join(missing)}: not found; on Debian: apt-get install {PACKAGES}")
        return 2
    wrong = [*check(folder), *check_roundings(folder)]
    print(
        "\n".join(wrong) or "every proof holds, and rests on the axioms of the real numbers and machine integers alone"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
