"""The C interface: a C program calls everything in the header, and gets what Python gets."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.capi import BuildError, build, library
from fastdp.capi.library import find_compiler, shared_python, why_not
from fastdp.capi.table import FUNCTIONS, STATUS
from fastdp.capi.text import header, members

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAM = HERE / "capi.c"
N, D, CELLS = 3000, 11, 500


needs_building = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, from the command that users call, and the program."""
    place = tmp_path_factory.mktemp("capi") / "made here"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fastdp.capi", str(place)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert [Path(line).name for line in done.stdout.splitlines()] == ["fastdp.h", "libfastdp.so", "fastdp.pc"]
    compile_program(place, PROGRAM.read_text(), "capi")
    return place


def compile_program(folder: Path, code: str, name: str, *flags: str) -> Path:
    source = folder / f"{name}.c"
    source.write_text(code)
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(folder / name), f"-I{folder}"]
    link = flags or (f"-L{folder}", "-lfastdp", f"-Wl,-rpath,{folder}")
    done = subprocess.run([*command, *link, "-lpthread", "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / name


def run(program: Path, *arguments: str, seconds: int = 1800, **environment: str) -> subprocess.CompletedProcess[str]:
    """With an empty environment, but for the kernel cache, from another folder."""
    if cache := os.environ.get("FASTDP_CACHE_DIR"):
        environment.setdefault("FASTDP_CACHE_DIR", cache)
    return subprocess.run(
        [str(program), *arguments], env=environment, cwd="/", capture_output=True, text=True, timeout=seconds,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def printed(folder: Path) -> dict[str, list[str]]:
    """What the program printed, by the first word of each line."""
    done = run(folder / "capi")
    assert done.stderr == ""
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    assert done.returncode == 0, [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    return {name: rest.split() for name, _, rest in lines if name != "refused"} | {
        "refused": [rest for name, _, rest in lines if name == "refused"]
    }


# --- the same inputs as the program's

i, j, c = np.arange(N), np.arange(D), np.arange(CELLS)
WHOLE = i * 37 % 1001 - 500
REAL = WHOLE / 8.0
LABELS = np.where(i % 3 == 0, 1.0, -1.0)
MARKS = (i % 3 == 0).astype(np.uint8)
RECORDS = ((i[:, None] * 13 + j * 7) % 64 - 32) / 64.0
BITS = (i[:, None] * (j + 3) % 5 < 2).astype(np.uint8)
W = (j - 5) / 16.0
WEIGHTS = 1.0 + c % 4
SHARES = (c % 9) / 8.0
MASK = c % 7 < 3
KEY = np.arange(1, 9, dtype=np.uint32)


def ints(texts: list[str]) -> list[int]:
    return [int(text) for text in texts]


def floats(texts: list[str]) -> list[float]:
    return [float.fromhex(text) for text in texts]


def seeded() -> Randomness:
    return Randomness(seed=7)


MECHANISMS: dict[str, Callable[[], Any]] = {
    "random_words": lambda: seeded().words(N).view(np.int64),
    "laplace_i64": lambda: fastdp.laplace(WHOLE, sensitivity=2.0, epsilon=0.5, rng=seeded()),
    "laplace_i64_in_place": lambda: fastdp.laplace(WHOLE, sensitivity=2.0, epsilon=0.5, rng=seeded()),
    "laplace_f64": lambda: fastdp.laplace(REAL, sensitivity=2.0, epsilon=0.5, rng=seeded()),
    "laplace_f64_on_grid": lambda: fastdp.laplace(REAL, sensitivity=2.0, epsilon=0.5, resolution=0.25, rng=seeded()),
    "gaussian_i64": lambda: fastdp.gaussian(WHOLE, sensitivity=2.0, epsilon=0.5, delta=1e-6, rng=seeded()),
    "gaussian_f64": lambda: fastdp.gaussian(REAL, sensitivity=2.0, epsilon=0.5, delta=1e-6, rng=seeded()),
    "gaussian_zcdp_i64": lambda: fastdp.gaussian(WHOLE, sensitivity=2.0, rho=0.1, rng=seeded()),
    "gaussian_zcdp_f64": lambda: fastdp.gaussian(REAL, sensitivity=2.0, rho=0.1, rng=seeded()),
    "exponential_mechanism_i64": lambda: [
        fastdp.exponential_mechanism(WHOLE, sensitivity=1.0, epsilon=0.1, rng=seeded())
    ],
    "exponential_mechanism_f64": lambda: [
        fastdp.exponential_mechanism(REAL, sensitivity=1.0, epsilon=0.1, monotonic=True, rng=seeded())
    ],
    "permute_and_flip_i64": lambda: [fastdp.permute_and_flip(WHOLE, sensitivity=1.0, epsilon=0.1, rng=seeded())],
    "permute_and_flip_f64": lambda: [
        fastdp.permute_and_flip(REAL, sensitivity=1.0, epsilon=0.1, monotonic=True, rng=seeded())
    ],
}


@needs_building
@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_and_selection_are_those_of_python(printed: dict[str, list[str]], name: str) -> None:
    wanted = np.asarray(MECHANISMS[name]())
    got = ints(printed[name]) if wanted.dtype.kind == "i" else floats(printed[name])
    assert got == wanted.tolist()


@needs_building
def test_literal_counts(printed: dict[str, list[str]]) -> None:
    for name, chosen in (("negatives", MARKS == 0), ("positives", MARKS == 1)):
        ones = BITS[chosen].sum(axis=0, dtype=int)
        wanted = np.column_stack([chosen.sum() - ones, ones]).ravel()
        assert ints(printed[f"literal_counts_{name}"]) == wanted.tolist()


@needs_building
def test_multiplicative_weights(printed: dict[str, list[str]]) -> None:
    def close(name: str, wanted: Any) -> None:
        assert floats(printed[name]) == pytest.approx(np.atleast_1d(wanted).tolist(), rel=1e-12), name

    after = np.where(MASK, math.exp(0.25), 1.0) * WEIGHTS
    close("weights_evaluate_mask", WEIGHTS[MASK].sum() / WEIGHTS.sum())
    close("weights_update_mask", after)
    close("weights_evaluate_mask_after", after[MASK].sum() / after.sum())
    close("weights_evaluate_values", (WEIGHTS * SHARES).sum() / WEIGHTS.sum())
    close("weights_update_values", WEIGHTS * np.exp(-0.5 * SHARES))
    # ten times e^300: they are scaled, and the sum is what the cells are
    close("weights_far_total", CELLS)


LOSSES = (
    fastdp.losses.SquaredError(),
    fastdp.losses.Logistic(),
    fastdp.losses.Hinge(),
    fastdp.losses.Huber(threshold=0.75),
    fastdp.losses.Custom(lambda score, label: 0.5 * (score - label)),
    fastdp.losses.SquaredDistance(),
    fastdp.losses.AbsoluteDeviation(),
)


@needs_building
@pytest.mark.parametrize("number", range(len(LOSSES)))
def test_gradient_sums(printed: dict[str, list[str]], number: int) -> None:
    gradients = LOSSES[number].gradients(W, RECORDS, LABELS)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = gradients * np.minimum(1.0, 0.5 / np.maximum(norms, 1e-300))
    got = np.array(ints(printed[f"gradient_sum_{number}"]))
    assert (norms > 0.5).any()
    # every record is rounded toward zero, by less than a unit of the grid
    assert np.abs(got * 2.0**-30 - clipped.sum(axis=0)).max() < 2.0 * N * 2.0**-30


@needs_building
def test_projections(printed: dict[str, list[str]]) -> None:
    low, high = -0.25 + j / 64.0, 0.25 + j / 64.0
    sets = {
        "project_ball": fastdp.sets.Ball(0.5),
        "project_ball_at": fastdp.sets.Ball(0.5, center=low),
        "project_ball_l1": fastdp.sets.Ball(0.5, norm=1),
        "project_box": fastdp.sets.Box(low, high),
        "project_simplex": fastdp.sets.Simplex(),
    }
    for name, over in sets.items():
        assert floats(printed[name]) == over.project(3.0 * W).tolist(), name


@needs_building
def test_raw_kernels(printed: dict[str, list[str]]) -> None:
    from fastdp.kernels.words import words_into

    words = np.empty(N, np.uint64)
    words_into(KEY, 5, 100, words)
    assert ints(printed["k_words"]) == words.view(np.int64).tolist()

    class Fixed(Randomness):
        def key(self) -> Any:
            return KEY.copy()

    whole = fastdp.laplace(WHOLE, sensitivity=2.0, epsilon=0.5, rng=Fixed()).tolist()
    assert ints(printed["k_laplace_i64"]) == whole
    assert ints(printed["k_laplace_left"]) == [2048]
    assert ints(printed["k_laplace_i64_settled"]) == whole
    for name, values, mechanism, terms in (
        ("k_laplace_f64", REAL, fastdp.laplace, {"epsilon": 0.5}),
        ("k_gaussian_i64", WHOLE, fastdp.gaussian, {"epsilon": 0.5, "delta": 1e-6}),
        ("k_gaussian_f64", REAL, fastdp.gaussian, {"epsilon": 0.5, "delta": 1e-6}),
    ):
        read = ints if values is WHOLE else floats
        assert read(printed[name]) == mechanism(values, sensitivity=2.0, rng=Fixed(), **terms).tolist(), name

    (total,), (masked,), (valued,) = (
        floats(printed[f"k_{n}"]) for n in ("sum_weights", "evaluate_mask", "evaluate_values")
    )
    assert (total, masked) == (WEIGHTS.sum(), WEIGHTS[MASK].sum())
    assert valued == pytest.approx((WEIGHTS * SHARES).sum(), rel=1e-14)
    doubled = np.where(MASK, 2.0, 1.0) * WEIGHTS
    assert floats(printed["k_update_mask"]) == doubled.tolist()
    assert floats(printed["k_update_values"]) == pytest.approx((doubled * np.exp(0.5 * SHARES)).tolist(), rel=1e-14)

    assert printed["k_norms_finite"] == ["0"]
    assert printed["k_sum_gradients"] == printed["gradient_sum_1"]
    assert printed["k_sum_gradients_custom"] == printed["gradient_sum_4"]
    assert printed["k_project"] == printed["project_ball"]
    assert printed["k_pack_rows_seen"] == ["1"]
    assert ints(printed["k_count_among"]) == [*BITS.sum(axis=0), *BITS[MARKS == 1].sum(axis=0)]


REFUSED = {
    "NULL": "1 values=NULL: must point to 4 numbers",
    "NULL out": "1 out=NULL: must point to 4 numbers",
    "negative length": "1 n=-4: must be at least 0, and at most 2^48",
    "huge length": f"1 n={2**63 - 1}: must be at least 0, and at most 2^48",
    "huge product": f"1 records: {2**94} entries: must be at most 2^48",
    "crooked": "1 values: its address must be a multiple of 8",
    "epsilon 0": "1 epsilon=0.0: must be > 0 and finite",
    "epsilon -1": "1 epsilon=-1.0: must be > 0 and finite",
    "epsilon NaN": "1 epsilon=nan: must be > 0 and finite",
    "epsilon inf": "1 epsilon=inf: must be > 0 and finite",
    "sensitivity 0": "1 sensitivity=0.0: must be > 0 and finite",
    "delta 1": "1 delta=1.0: must be between 0 and 1, both excluded",
    "rho -1": "1 rho=-1.0: must be > 0 and finite",
    "scale": "1 sensitivity / epsilon=inf: the noise scale must be between 2^-20 and 2^40",
    "resolution 3": "1 resolution=3.0: must be a power of two",
    "resolution NaN": "1 resolution=nan: must be",
    "NaN value": "2 values: must be finite",
    "rng": "1 rng=12345: must be 0, for fresh keys, or come from fastdp_rng_seeded",
    "rng freed": "1 rng=12345: must come from fastdp_rng_seeded",
    "NaN score": "2 scores: must not be NaN or +inf",
    "no candidates": "1 scores: must hold at least one candidate",
    "monotonic 2": "1 monotonic=2: must be at most 1",
    "bits of 2": "2 column 0: must hold 0 and 1 only",
    "labels of 2": "2 y: must be 1, and 0 or -1",
    "no weight": "2 weights: must be finite, and at least 0, and not all 0",
    "NaN weight": "2 weights: must be finite, and at least 0, and not all 0",
    "total -1": "1 total=-1.0: must be >= 0 and finite",
    "rate": "1 rate=1000000000.0: must be between -300 and 300",
    "values beyond 1": "1 values: must lie in [0, 1]",
    "loss 99": "1 loss=99: must be at most 6",
    "custom NULL": "1 derivative: must be a function",
    "no labels": "1 y=None: must be the labels of the records",
    "NaN record": "2 X: must be finite",
    "NaN w": "1 w: must be finite",
    "coarse": "1 clip=1.0, resolution=2.0: clip / resolution must be at least 1",
    "infinite point": "2 point: must be finite",
    "radius 0": "1 radius=0.0: must be > 0 and finite",
    "box": "1 lower: must be at most upper",
    "total NaN": "1 total=nan: must be > 0 and finite",
    "place": "1 undecided: must be places in out, which has n=4 entries",
    "block": "1 block=-1: must be an integer >= 0",
    "plan": "1 plan: must come from fastdp_plan_laplace_*",
}


@needs_building
def test_what_is_wrong_is_a_status_and_a_message(printed: dict[str, list[str]]) -> None:
    got = dict(line.split(": ", 1) for line in printed["refused"])
    assert set(got) == set(REFUSED)
    for name, wanted in REFUSED.items():
        assert got[name].startswith(wanted), name
    assert printed["untouched"] == ["1", "2", "3", "4"]  # nothing of all this wrote anything
    assert printed["not_chosen"] == ["-9"]
    assert floats(printed["not_evaluated"]) == [-9.0]


@needs_building
def test_threads_make_the_first_call_together_and_have_errors_of_their_own(printed: dict[str, list[str]]) -> None:
    assert printed["threads_bad"] == ["0"]
    assert printed["failures"] == ["0"]  # the program looks at its signal handlers after the first call
    assert printed["last_error"] == ["[]"]
    assert printed["locale"] == ["C"]


def test_the_program_calls_everything_in_the_header() -> None:
    code = PROGRAM.read_text()
    declared = set(re.findall(r"^(?:int |FASTDP_API const ).*?\b(fastdp_\w+)\(", header(), re.MULTILINE))
    assert {f"fastdp_{f.name}" for f in FUNCTIONS} | {"fastdp_last_error", "fastdp_kernels"} == declared
    assert declared - set(re.findall(r"\b(fastdp_\w+)\(", code)) == set()
    assert set(members()) - set(re.findall(r"\bk->(\w+)\(", code)) == set()
    for place in (f"FASTDP_{name}" for name in STATUS):
        assert place in header()


# --- where the library finds itself


@needs_building
def test_the_library_shows_its_own_functions_alone(folder: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", str(folder / "libfastdp.so")], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in shown.stdout.splitlines()}
    wanted = {f"fastdp_{f.name}" for f in FUNCTIONS} | {"fastdp_last_error", "fastdp_kernels"}
    assert names - {"PyInit__fastdp_capi"} == wanted


@needs_building
def test_pkg_config_knows_how_to_build_with_it(folder: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    asked = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fastdp"],
        env=os.environ | {"PKG_CONFIG_PATH": str(folder)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    code = "#include <fastdp.h>\nint main(void) { return fastdp_random_words(0, 0, 0); }\n"
    (folder / "small.c").write_text(code)
    command = f"cc small.c -o small {asked.stdout.strip()}"
    subprocess.run(["sh", "-c", command], cwd=folder, check=True, capture_output=True)
    assert run(folder / "small").returncode == 0


@needs_building
def test_the_header_is_cpp_too(folder: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no c++")
    code = "#include <fastdp.h>\nint main() { return fastdp_kernels() == nullptr; }\n"
    (folder / "plus.cpp").write_text(code)
    flags = [f"-I{folder}", f"-L{folder}", "-lfastdp", f"-Wl,-rpath,{folder}"]
    subprocess.run(["c++", "-Wall", "-Werror", "plus.cpp", "-o", "plus", *flags], cwd=folder, check=True)
    assert run(folder / "plus").returncode == 0


PLUGIN = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    (void)argc;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    int (*laplace)(const int64_t *, int64_t, double, double, int64_t, int64_t *) =
        (int (*)(const int64_t *, int64_t, double, double, int64_t, int64_t *))dlsym(library, "fastdp_laplace_i64");
    const char *(*error)(void) = (const char *(*)(void))dlsym(library, "fastdp_last_error");
    int64_t x[2] = {1, 2};
    int status = laplace(x, 2, 1.0, 1.0, 0, x);
    printf("%d %s\n", status, error());
    fflush(stdout);
    if (fork() == 0) { /* a child has no Python that it could use, and is told so */
        status = laplace(x, 2, 1.0, 1.0, 0, x);
        printf("%d %s\n", status, error());
        fflush(stdout);
        _exit(0);
    }
    int ended;
    wait(&ended);
    dlclose(library);
    return ended != 0;
}
"""


@needs_building
def test_a_plug_in_whose_symbols_are_its_own_and_a_child_after_a_fork(folder: Path) -> None:
    program = compile_program(folder, PLUGIN, "plugin", "-ldl")
    done = run(program, str(folder / "libfastdp.so"))
    first, second = done.stdout.splitlines()
    assert first.strip() == "0"
    assert second == "5 this process was forked after Python had started in its parent: must be before"
    assert (done.returncode, done.stderr) == (0, "")


@needs_building
def test_a_host_that_runs_python_shares_it(folder: Path, run_python: Callable[..., str]) -> None:
    """Called from Python, by ctypes: the same interpreter, the budget that is open, no copy of anything."""
    code = f"""
import ctypes, datetime, sys, threading
import numpy as np
import fastdp
getattr(type(datetime.datetime_CAPI), "nothing", None)  # gives capsules the version tag that cffi takes for a lock
library = ctypes.CDLL({str(folder / "libfastdp.so")!r})
library.fastdp_last_error.restype = ctypes.c_char_p
double, pointer, long = ctypes.c_double, ctypes.c_void_p, ctypes.c_int64
out = np.zeros(5, np.int64)
def laplace(epsilon, lib=library):
    return lib.fastdp_laplace_i64(
        pointer(out.ctypes.data), long(5), double(1.0), double(epsilon), long(0), pointer(out.ctypes.data))
path = list(sys.path)
held = ctypes.PyDLL({str(folder / "libfastdp.so")!r})  # calls with Python's lock held
threads = [threading.Thread(target=laplace, args=(1.0, lib)) for lib in (library, held, library, held)]
[t.start() for t in threads], [t.join() for t in threads]
assert sys.path == path
with fastdp.Budget(epsilon=1.0) as budget:
    print(laplace(0.75), laplace(0.75), library.fastdp_last_error().decode()[:40])
    print([(r.mechanism, r.parameters["epsilon"]) for r in budget.releases])
print(laplace(-1.0), library.fastdp_last_error().decode())
import os
if os.fork() == 0:  # Python's own fork goes well
    os._exit(laplace(1.0))
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    lines = run_python(code).splitlines()
    assert lines[0].startswith("0 3 ")
    assert lines[1:] == ["[('laplace', 0.75)]", "1 epsilon=-1.0: must be > 0 and finite", "0"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Build a library that names other places than its own, and make its first call."""

    def attempt(**names: Any) -> subprocess.CompletedProcess[str]:
        for name, value in names.items():
            monkeypatch.setattr(f"fastdp.capi.library.{name}", value)
        build(tmp_path)
        program = compile_program(tmp_path, PROGRAM.read_text(), "capi")
        return run(program, "one")

    return attempt


@needs_building
def test_an_environment_that_is_gone_is_a_status(elsewhere: Any, tmp_path: Path) -> None:
    class Gone:
        executable, base_prefix, platform = str(tmp_path / "gone" / "bin" / "python"), sys.base_prefix, sys.platform

    done = elsewhere(sys=Gone)
    assert done.returncode == 0  # it was refused
    assert re.match(r"refused start: 5 \S.*\nleft 3\n", done.stdout), done.stdout


@needs_building
def test_an_environment_without_fastdp_is_a_status(elsewhere: Any, tmp_path: Path) -> None:
    done = elsewhere(_FIRST=library._FIRST.replace("fastdp.capi.embedded", "fastdp.capi.nowhere"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "refused start: 5 fastdp cannot be used in the environment of " in done.stdout
    assert "No module named 'fastdp.capi.nowhere'" in done.stdout


@needs_building
def test_a_library_of_another_version_is_a_status(elsewhere: Any) -> None:
    done = elsewhere(digest=lambda: "0" * 64)
    assert (done.returncode, done.stderr) == (0, "")
    assert "another version of fastdp made this library: write it anew with python -m fastdp.capi" in done.stdout
    assert "left 3" in done.stdout


# --- what a machine may lack


def test_a_python_without_a_shared_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    static = {"LIBDIR": str(tmp_path), "LDLIBRARY": "libpython3.a", "INSTSONAME": "libpython3.a", "LDVERSION": "3"}
    monkeypatch.setattr("fastdp.capi.library.sysconfig.get_config_var", static.get)
    monkeypatch.setattr("fastdp.capi.library.sys.base_prefix", str(tmp_path))
    with pytest.raises(BuildError, match=r"this Python has no shared library \(libpython3\): must be one"):
        shared_python()
    assert not list(tmp_path.iterdir())


def test_a_missing_compiler_and_missing_headers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc -m64")
    with pytest.raises(BuildError, match=r"/nowhere/cc: there is no such C compiler"):
        find_compiler()
    monkeypatch.setattr("fastdp.capi.library.shared_python", lambda: tmp_path)
    monkeypatch.setattr("fastdp.capi.library.sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(BuildError, match=r"has no Python.h"):
        build(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_is_missing_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastdp.capi", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CC": "/nowhere/cc"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fastdp.capi: ")
    assert done.stderr.count("\n") == 1


# --- the other direction: C functions as losses and queries


@needs_building
def test_a_c_function_is_a_loss_and_a_query(tmp_path: Path) -> None:
    cffi = pytest.importorskip("cffi")
    source = tmp_path / "mine.c"
    source.write_text(
        "#include <stdint.h>\n"
        "double pinball(double score, double label) { return score > label ? 0.1 : -0.9; }\n"
        "int64_t odd(int64_t cell) { return cell % 2; }\n"
    )
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "mine.so")], check=True)
    ffi = cffi.FFI()
    ffi.cdef("double pinball(double, double); int64_t odd(int64_t);")
    mine = ffi.dlopen(str(tmp_path / "mine.so"))
    loss = fastdp.losses.Custom(ffi.addressof(mine, "pinball"), slope_bound=0.9, x_norm=1.0)
    twin = fastdp.losses.Custom(lambda s, y: 0.1 if s > y else -0.9, slope_bound=0.9, x_norm=1.0)
    x = np.linspace(-1, 1, 2000)[:, None]
    fits = [
        fastdp.noisy_projected_gradient_descent(
            x, 0.5 * x[:, 0], loss=each, over=fastdp.sets.Ball(1.0), epsilon=1.0, delta=1e-6, steps=5, rng=seeded()
        ).w.tolist()
        for each in (loss, twin)
    ]
    assert fits[0] == fits[1]
    domain = fastdp.Domain.binary(6)
    for function in (ffi.addressof(mine, "odd"), mine.odd):
        bound = fastdp.Predicate(function).bind(domain)
        assert bound.values.tolist() == [0, 1] * 32


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-m", "fastdp.capi", str(tmp_path / "file" / "x")], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fastdp.capi: cannot write to {tmp_path / 'file' / 'x'}: ") or why_not()
