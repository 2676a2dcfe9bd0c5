"""Memory: what may be touched, and what happens where there is none. `python -m tests.machinery.sanitize`.

Three parts, each named on the command line to run by itself:

- c: a C program calls everything in fastdp.h with hostile arguments (hostile.c), it and the library compiled with
  AddressSanitizer and UndefinedBehaviorSanitizer;
- bounds: every case of the benchmark registry, on a small size, with kernels that check every index, in a cache folder
  of their own;
- memory: in calls of every mechanism the allocation number N fails, for N = 1, 2, 3, ... (starve.py).

A part that this machine has no tools for is skipped, and says so.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fastdp.capi.library import BuildError, find_compiler, why_not
from fastdp.capi.table import FUNCTIONS, Argument, Function

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"
# Python itself is not clean of leaks; a new stack for signals would be taken from LLVM's own handler
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0:handle_sigbus=0"
}


class Skipped(Exception):
    """There are no tools for this part here."""


# --- the C interface

FILL = {
    "double": "a_small()", "int64_t": "an_int64_t()", "uint64_t": "word()", "uint32_t": "(uint32_t)word()",
    "uint8_t": "a_bit()",
}  # fmt: skip
NUMBERS = {
    "double": "a_double()", "int64_t": "an_int64_t()", "int": "an_int()", "fastdp_derivative": "a_derivative()",
}  # fmt: skip
SHOWN = {"double": "%a", "int64_t": '%" PRId64 "', "int": "%d"}
CHANGE = ("weights_update_mask", "weights_update_values")  # after FASTDP_DOMAIN the header promises nothing


def calls() -> str:
    """calls.h: for each function one that calls it, made of its row in the table."""
    made = "\n\n".join("\n".join(_call(function)) for function in FUNCTIONS)
    names = ", ".join(f"call_{function.name}" for function in FUNCTIONS)
    return f"{made}\n\nstatic void (*const hostile_calls[])(void) = {{{names}}};\n"


def _call(function: Function) -> Iterator[str]:
    lengths = [a.name for a in function.arguments if a.least is not None]
    yield f"static void call_{function.name}(void) {{"
    yield f'    say("{function.name}(");'
    yield f"    int wrong = {f'once_in(12) ? (int)below({len(lengths)}) : -1' if lengths else '-1'};"
    yield "    int64_t room = wrong < 0 ? -1 : 8;"  # of arrays that nobody may read
    for at, name in enumerate(lengths):
        length = "below(4)" if function.name.startswith("settle") else "a_length()"  # each exactly, which takes long
        yield f"    int64_t {name} = wrong == {at} ? no_length() : {length};"
    if {"n", "d"} <= set(lengths):
        yield "    if (wrong < 0) d = 1 + d % 40;"
        yield "    if (once_in(40)) { n = d = 1LL << 40; room = 8; }"  # each is a length, and their product is none
    for argument in function.arguments:
        if argument.least is None:
            yield from _array(argument, function) if argument.shape is not None else _number(argument)
    shown = [a for a in function.arguments if a.shape is None and a.ctype in SHOWN]
    form = ", ".join(f"{a.name}={SHOWN[a.ctype]}" for a in shown)
    yield f'    say("{form})"{"".join(f", {a.name}" for a in shown)});'
    yield f"    int status = fastdp_{function.name}({', '.join(a.name for a in function.arguments)});"
    yield f"    judge(status, {int(function.name in CHANGE)});"
    yield "}"


def _number(argument: Argument) -> Iterator[str]:
    value = "a_source()" if argument.name == "rng" else NUMBERS[argument.ctype]
    yield f"    {argument.ctype} {argument.name} = {value};"


def _array(argument: Argument, function: Function) -> Iterator[str]:
    name, kind, shape = argument.name, argument.ctype, argument.shape or ()
    in_place = name == "out" and any(a.name == "values" for a in function.arguments)
    yield f"    {kind} *{name} = NULL;"
    if in_place:
        yield f"    if (values != NULL && arrays[used - 1].written) {name} = ({kind} *)values;"
    yield f"    if ({f'{name} == NULL && ' if in_place else ''}!once_in(25)) {{"
    yield f"        int64_t entries = room >= 0 ? room : {' * '.join(map(str, shape))};"
    shift = "0" if kind == "uint8_t" else "once_in(40) ? 1 : 0"
    yield f"        {name} = make((size_t)entries * sizeof *{name}, {shift});"
    yield "        for (int64_t i = 0; i < entries; i++) {"
    if kind.endswith("_plan"):
        yield f"            {kind} x;"
        yield f"            fill_plan((double *)&x, (int)(sizeof x / sizeof(double)), {int('laplace' in kind)});"
    else:
        value = "a_share()" if name in ("weights", "values") and "cells" in shape else FILL[kind]
        yield f"            {kind} x = ({kind}){'below(300)' if name == 'undecided' else value};"
    yield f"            memcpy((char *){name} + (size_t)i * sizeof x, &x, sizeof x);"  # it may be misaligned
    yield "        }"
    yield f"        seal({'once_in(3)' if name == 'values' and not argument.written else int(argument.written)});"
    yield "    }"


def check_c(arguments: argparse.Namespace) -> str:
    if reason := why_not():
        raise Skipped(reason)
    compiler = [*find_compiler(), *shlex.split(FLAGS)]
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch, "trial.c")
        trial.write_text("int main(void) { return 0; }\n")
        done = subprocess.run([*compiler, str(trial), "-o", f"{scratch}/trial"], capture_output=True, check=False)
        if done.returncode or subprocess.run([f"{scratch}/trial"], check=False).returncode:
            raise Skipped(f"{compiler[0]} has no sanitizers here")
        code = f"from fastdp.capi import build; build({scratch!r})"
        asked = os.environ | {"CC": shlex.join(compiler)}
        subprocess.run([sys.executable, "-c", code], env=asked, cwd=ROOT, check=True)
        Path(scratch, "calls.h").write_text(calls())
        link = [f"-I{scratch}", f"-L{scratch}", "-lfastdp", f"-Wl,-rpath,{scratch}", "-lm"]
        strict = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]
        subprocess.run([*compiler, *strict, str(HERE / "hostile.c"), "-o", f"{scratch}/hostile", *link], check=True)
        command = [f"{scratch}/hostile", str(arguments.seed), str(arguments.calls)]
        done = subprocess.run(command, env=os.environ | OPTIONS, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    return "" if done.returncode == 0 else f"exit code {done.returncode}"


# --- the kernels


def check_bounds(arguments: argparse.Namespace) -> str:
    place = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    asked = {"NUMBA_BOUNDSCHECK": "1", "FASTDP_CACHE_DIR": os.path.join(place, "fastdp", "bounds")}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *BOUNDS]
    done = subprocess.run(command, env=os.environ | asked, cwd=ROOT, check=False)
    return "" if done.returncode == 0 else f"exit code {done.returncode}"


BOUNDS = ("tests/bench/cases/test_work.py", "tests/kernels/test_selection.py", "tests/kernels/test_literals.py")


# --- no memory


def check_memory(arguments: argparse.Namespace) -> str:
    if sys.platform != "linux":
        raise Skipped("a library can be put before malloc on Linux only")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            compiler = find_compiler()
        except BuildError as error:
            raise Skipped(str(error)) from None
        library = f"{scratch}/starve.so"
        flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*compiler, *flags, str(HERE / "starve.c"), "-o", library, "-ldl"], check=True)
        command = [sys.executable, "-m", "tests.machinery.starve", "--seconds", str(arguments.seconds)]
        asked = {"LD_PRELOAD": library, "PYTHONMALLOC": "malloc", "FASTDP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=os.environ | asked, cwd=ROOT, check=False)
    return "" if done.returncode == 0 else f"exit code {done.returncode}"


PARTS = {"c": check_c, "bounds": check_bounds, "memory": check_memory}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="c, bounds, memory; all without a name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=50_000, help="of the C interface")
    parser.add_argument("--seconds", type=float, default=60.0, help="of failing allocations")
    arguments = parser.parse_args()
    broken = 0
    for name in arguments.parts or PARTS:
        start = time.perf_counter()
        try:
            problem = PARTS[name](arguments)
        except Skipped as reason:
            print(f"{name}: SKIPPED, {reason}", flush=True)
            continue
        broken += bool(problem)
        print(f"{name}: {problem or 'ok'} after {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
