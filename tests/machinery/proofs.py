"""The proofs that a machine checks: `python -m tests.machinery.proofs`.

Every `.v` beside a proof note is compiled by Coq, in the order of what it needs, in a folder of its own. A proof with a
gap does not pass: no file says Admitted, admit or Axiom, and what each theorem rests on in the end, as Coq lists it, is
what Coq's real numbers rest on. Wants Coq with coquelicot (on Debian `coq libcoq-coquelicot`).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("fastdp", "kernels")
GAPS = re.compile(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard Checking)\b")
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
NEEDS = re.compile(r"From fastdp Require Import ([\w ]+)\.")
THEOREM = re.compile(r"^Theorem (\w+)", re.MULTILINE)
# What the standard library's real numbers are built on.
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
    return [name for group in NEEDS.findall(path.read_text(encoding="utf-8")) for name in group.split()]


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
    return {line.split()[0] for line in printed.splitlines() if line and line[0].isalpha() and line != "Axioms:"} - {
        "Closed"
    }


def check(folder: Path) -> list[str]:
    """What is wrong, if anything; prints what was checked."""
    wrong = []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
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
        lines = [f"From fastdp Require Import {path.stem}.", *(f"Print Assumptions {name}." for name in theorems(path))]
        (folder / "assumptions.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
        ran = _coq(["assumptions.v"], folder)
        more = rests_on(ran.stdout) - OF_THE_REALS
        if ran.returncode or more:
            wrong.append(f"{path.relative_to(ROOT)} rests on more than the real numbers: {more or ran.stderr}")
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.proofs", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "proofs")
    folder = parser.parse_args(arguments).folder
    if shutil.which("coqc") is None:
        print("coqc was not found: install Coq with coquelicot (on Debian: apt-get install coq libcoq-coquelicot)")
        return 2
    wrong = check(folder)
    print("\n".join(wrong) or "every proof holds, and rests on the axioms of the real numbers alone")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
