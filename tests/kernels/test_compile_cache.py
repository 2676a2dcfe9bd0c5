"""The disk cache of compiled kernels (kernels/compile.py), driven from outside.

Each test lays out a small fastdp in a temporary folder (small_fastdp.py), and runs it in processes of its own.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Parent
from tests.kernels.small_fastdp import (
    AS_ROOT,
    DIGEST,
    HELPER,
    LOOK,
    LOOPS,
    MAGIC,
    NOT_KEPT,
    TOTAL,
    House,
    Process,
    finish,
)


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory, parent: Parent) -> Path:
    house = House(tmp_path_factory.mktemp("warm"), parent)
    assert house.run()["written"] == 2
    return house.cache


@pytest.fixture
def warm(house: House, warm_cache: Path) -> House:
    """A house whose cache holds `total` and `bump` for int64: its sources, and so its kernels' names, are the same."""
    shutil.copytree(warm_cache, house.cache)
    return house


# ---------------------------------------------------------------------------------------------------------------------
# what is found again, and what must not be


def test_second_process_compiles_nothing(house: House) -> None:
    cold = house.run()
    assert (cold["answer"], cold["hits"], cold["misses"], cold["written"]) == (17, 0, 2, 2)
    assert sorted(cold["compiled"]) == ["bump", "total"]
    assert (cold["state"], cold["files"]) == ("in use", 2)
    assert cold["bytes"] == sum(f.stat().st_size for f in house.files())
    second = house.run()
    assert (second["answer"], second["hits"], second["misses"], second["written"]) == (17, 1, 0, 0)
    assert second["compiled"] == []


def test_importing_compiles_nothing_and_leaves_no_trace(house: House) -> None:
    result = house.run("answer = compile_cache._opened is None and not os.path.exists(os.environ['FASTDP_CACHE_DIR'])")
    assert result["answer"] is True
    assert result["compiled"] == []


def test_a_helper_from_disk_is_compiled_into_a_new_caller(house: House) -> None:
    house.run("answer = loops.bump(1)")
    result = house.run()
    assert (result["answer"], result["hits"], result["compiled"]) == (17, 1, ["total"])


# what numba reads and compiles before it compiles anything
PREPARED = """
from numba.core.runtime import rtsys
answer.append(["numba.np.arraymath" in sys.modules, "scipy.linalg" in sys.modules, rtsys._init])
"""


def test_loading_a_kernel_does_not_prepare_numba_to_compile(warm: House) -> None:
    """It would take a third of a new process's time to its first number; a compilation that follows does."""
    code = f"answer = [int(loops.total(np.arange(4)))]{PREPARED}answer.append(float(loops.total(np.arange(4.0))))"
    result = warm.run(f"{code}{PREPARED}", forked=False)
    assert result["answer"][:3] == [17, [False, False, False], 17.0]
    assert result["answer"][3][::2] == [True, True]
    assert (result["hits"], result["written"]) == (1, 2)


def test_a_numba_whose_runtime_is_elsewhere_prepares_itself(warm: House) -> None:
    nowhere = "compile_cache._runtime_of_numba = lambda: None\n"
    result = warm.run(f"{nowhere}answer = [int(loops.total(np.arange(4)))]{PREPARED}", forked=False)
    assert (result["answer"][0], result["answer"][1][::2], result["hits"]) == (17, [True, True], 1)


def test_callback(house: House) -> None:
    code = "answer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loops.bump_in_c.address)(20)"
    cold, second = house.run(code), house.run(code)
    assert (cold["answer"], cold["misses"], cold["written"]) == (41, 2, 2)
    assert (second["answer"], second["hits"], second["misses"]) == (41, 1, 0)


def test_kernel_and_callback_of_one_function_are_kept_apart(house: House) -> None:
    house.write(
        "loops",
        """
from .compile import compile_callback, jit
def f(x):
    return x + 1
kernel, callback = jit(f), compile_callback("int64(int64)")(f)
""",
    )
    code = """
loops.kernel.compile("int64(int64)")
answer = [loops.kernel(1), ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loops.callback.address)(5)]
"""
    assert house.run(code)["written"] == 2
    second = house.run(code)
    assert (second["answer"], second["hits"]) == ([2, 6], 2)


def test_edited_helper_in_another_file(warm: House) -> None:
    warm.write("helper", HELPER.replace("+ 1", "+ 2"))
    edited = warm.run()
    assert (edited["answer"], edited["hits"], edited["files"]) == (22, 0, 4)
    warm.write("helper", HELPER)
    back = warm.run()
    assert (back["answer"], back["hits"], back["misses"]) == (17, 1, 0)


DEEP = """
from .compile import jit

@jit(inline=True)
def deep(x):
    return x * 2 + 1
"""
BETWEEN = """
from .compile import jit
IMPORT

@jit(inline=True)
def bump(x):
    return NAME(x)
"""


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from .deeper import deep", "deep"),
        ("from .deeper import (  # deep) down\n    deep as name,\n)", "name"),
        ("from . import (  # it is (deep) down\n    layout, deeper,\n)\nname = deeper.deep", "name"),
        ("from . import layout, deeper as below; name = below.deep", "name"),
        ("from . \\\n    import deeper as below\nname = below.deep", "name"),
        ("def late():\n    from .deeper import deep\n    return deep\nname = late()", "name"),
        ("if True: from .deeper import deep", "deep"),
        ("import fastdp.kernels.deeper\nname = fastdp.kernels.deeper.deep", "name"),
        ("from fastdp.kernels.deeper import deep", "deep"),
        ("from importlib import import_module\nname = import_module(__name__[:-6] + 'deeper').deep", "name"),
        ("name = __import__(__name__[:-6] + 'deeper', fromlist=['deep']).deep", "name"),
        ("from ..kernels.deeper import deep", "deep"),
    ],
)
def test_edited_helper_two_imports_away(house: House, statement: str, name: str) -> None:
    house.write("deeper", DEEP)
    house.write("helper", BETWEEN.replace("IMPORT", statement).replace("NAME", name))
    code = "answer = [int(loops.bump(1)), compile_cache._store().sources.digest(['loops'])]"
    (first, digest), _ = house.run(code)["answer"], house.write("deeper", DEEP.replace("+ 1", "+ 2"))
    edited = house.run(code)
    assert (first, edited["answer"][0], edited["hits"]) == (3, 4, 0)
    assert edited["answer"][1] != digest


def test_edited_file_that_a_kernel_is_not_made_of(warm: House) -> None:
    """Others' kernels, locks, known answers: nothing is compiled again; but what has a say in every kernel counts."""
    warm.write("other", HELPER)
    assert warm.run()["hits"] == 1
    for module in ("known_answers", "forks", "cache_folder", "requirements", "layout"):
        with (warm.kernels / f"{module}.py").open("a") as file:
            file.write("# edited\n")
    assert warm.run()["hits"] == 1
    for module in ("compile", "compile_cache", "__init__"):
        with (warm.kernels / f"{module}.py").open("a") as file:
            file.write("# edited\n")
        result = warm.run()
        assert (result["answer"], result["hits"]) == (17, 0)


PAIR = """
from typing import NamedTuple

class Pair(NamedTuple):
    x: int
    y: int
"""


def test_edited_type_of_an_argument(house: House) -> None:
    """A kernel need not import the type that it is given: numba names a tuple after its class and types alone."""
    house.write("pairs", PAIR)
    house.write("loops", LOOPS + "\n@jit\ndef first(pair):\n    return pair.x\n")
    code = "from fastdp.kernels.pairs import Pair\nanswer = loops.first(Pair(1, 2))"
    assert [house.run(code)["answer"], house.run(code)["hits"]] == [1, 1]
    house.write("pairs", PAIR.replace("    x: int\n    y: int", "    y: int\n    x: int"))
    edited = house.run(code)
    assert (edited["answer"], edited["hits"]) == (2, 0)


def test_edited_kernel_that_another_holds(house: House) -> None:
    """It came as an argument: the module that holds it does not import the one that it is from."""
    house.write("maker", CLOSURES.partition("three, four")[0].replace("from .helper import bump\n", ""))
    house.write("loops", "from .helper import bump\nfrom .maker import make\nthree = make(3, bump)")
    first = house.run("answer = loops.three(2)")["answer"]
    assert house.run("answer = loops.three(2)")["hits"] == 1
    house.write("helper", HELPER.replace("+ 1", "+ 2"))
    edited = house.run("answer = loops.three(2)")
    assert (edited["answer"], edited["hits"]) == (first + 2, 0)


@pytest.mark.parametrize("opened", [False, True], ids=["before the cache is opened", "after"])
def test_source_edited_under_a_running_process(house: House, opened: bool) -> None:
    """What was imported is not what is digested from now on: nothing of this process may be filed under that digest."""
    edit = "time.sleep(0.05); open(os.path.join(os.path.dirname(loops.__file__), 'helper.py'), 'a').write('# edited')"
    result = house.run(f"{'compile_cache.cache_info()' if opened else ''}\n{edit}\n{TOTAL}")
    assert (result["answer"], result["written"], result["place"]) == (17, 0, None)
    assert "changed" in result["state"]
    assert house.files() == []


def test_source_touched_under_a_running_process(warm: House) -> None:
    touch = "compile_cache.cache_info(); os.utime(os.path.join(os.path.dirname(loops.__file__), 'helper.py'))"
    assert warm.run(f"{touch}\n{TOTAL}")["hits"] == 1


@pytest.mark.parametrize(
    "env",
    [{"NUMBA_OPT": "1"}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}],
    ids=lambda env: next(iter(env)),
)
def test_code_generated_otherwise_is_another_overload(warm: House, env: dict[str, str]) -> None:
    result = warm.run(**env)
    assert (result["answer"], result["hits"], result["misses"]) == (17, 0, 2)


@pytest.mark.parametrize("before", ["", "numba.config.DISABLE_JIT = 1"], ids=["environment", "configuration"])
def test_numba_disable_jit(warm: House, before: str) -> None:
    """Most kernels have no form in plain Python, so fastdp says what to do instead of failing somewhere inside."""
    process = warm.start(before=before, NUMBA_DISABLE_JIT=None if before else "1")
    _, err = process.communicate(timeout=1800)
    assert process.returncode == 1
    assert err.splitlines()[-1] == (
        "ImportError: fastdp's kernels are compiled, and have no form in plain Python: NUMBA_DISABLE_JIT must be "
        "unset, or 0, in a process that calls fastdp"
    )


# ---------------------------------------------------------------------------------------------------------------------
# damaged files


def truncate(file: Path, other: Path) -> None:
    os.truncate(file, 1000)


def empty(file: Path, other: Path) -> None:
    os.truncate(file, 0)


def flip_one_bit(file: Path, other: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def replace_with_another_kernel(file: Path, other: Path) -> None:
    shutil.copy(other, file)


def replace_with_a_link(file: Path, other: Path) -> None:
    moved = file.parent.parent / "moved"
    file.rename(moved)
    file.symlink_to(moved)


def replace_with_a_valid_file_that_does_not_load(file: Path, other: Path) -> None:
    body = pickle.dumps("not a kernel")
    file.write_bytes(file.read_bytes()[: MAGIC + DIGEST] + hashlib.sha256(body).digest() + body)


def replace_with_a_pipe(file: Path, other: Path) -> None:
    file.unlink()
    os.mkfifo(file)  # who opens it for reading waits for somebody who writes


def let_others_write(file: Path, other: Path) -> None:
    file.chmod(0o622)


def give_to_another_user(file: Path, other: Path) -> None:
    if not AS_ROOT:
        pytest.skip("only root can give a file away")
    os.chown(file, 1, -1)


@pytest.mark.parametrize(
    "damage",
    [
        replace_with_a_pipe,
        let_others_write,
        give_to_another_user,
        truncate,
        empty,
        flip_one_bit,
        replace_with_another_kernel,
        replace_with_a_link,
        replace_with_a_valid_file_that_does_not_load,
    ],
)
def test_damaged_file_is_compiled_afresh_and_overwritten(warm: House, damage: Any) -> None:
    file = warm.file("loops.total-")
    header = file.read_bytes()[: MAGIC + DIGEST]
    damage(file, warm.file("helper.bump-"))
    result = warm.run()
    assert (result["answer"], result["bad"], result["hits"], result["written"]) == (17, 1, 1, 1)  # the hit is `bump`
    assert not file.is_symlink()
    content = file.read_bytes()
    body = content[MAGIC + 2 * DIGEST :]
    assert content == header + hashlib.sha256(body).digest() + body
    assert len(body) > 2000


class Trap:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("wrong", [None, "magic", "key", "checksum"])
def test_nothing_is_unpickled_before_header_and_checksum_are_verified(warm: House, wrong: str | None) -> None:
    file, marker = warm.file("loops.total-"), warm.folder / "marker"
    header, body = file.read_bytes()[: MAGIC + DIGEST], pickle.dumps(Trap(marker))
    parts = {"magic": header[:MAGIC], "key": header[MAGIC:], "checksum": hashlib.sha256(body).digest()}
    if wrong is not None:
        parts[wrong] = parts[wrong][::-1]
    file.write_bytes(b"".join(parts.values()) + body)
    result = warm.run()
    assert (result["answer"], result["bad"]) == (17, 1)
    assert marker.exists() == (wrong is None)  # with nothing wrong the trap does snap


# ---------------------------------------------------------------------------------------------------------------------
# places


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_the_user_can_read_what_is_written(house: House) -> None:
    house.run(before="os.umask(0)")
    (digest,) = house.cache.iterdir()
    assert [mode(house.cache), mode(digest)] == [0o700, 0o700]
    assert {mode(f) for f in house.files()} == {0o600}


def test_cache_switched_off(house: House) -> None:
    result = house.run(FASTDP_CACHE_DIR="")
    assert (result["answer"], result["place"], result["state"]) == (17, None, "off: FASTDP_CACHE_DIR is empty")
    assert (result["misses"], result["written"], result["unwritable"]) == (2, 0, 0)
    assert list((house.folder / "home").iterdir()) == list((house.folder / "tmp").iterdir()) == []


def test_named_place_cannot_be_made(house: House) -> None:
    """A named place is the only choice: nothing is written elsewhere."""
    (house.folder / "file").touch()
    for place, code in ((house.folder / "file", TOTAL), (house.folder / "file" / "below", LOOK)):
        result = house.run(code, FASTDP_CACHE_DIR=str(place))
        assert (result["place"], result["written"], result["unwritable"]) == (None, 0, 0)
        assert result["state"].startswith(f"off: {place}: ")
        assert result["answer"] in (17, None)
    assert list((house.folder / "home").iterdir()) == list((house.folder / "tmp").iterdir()) == []


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_read_only_cache_is_read(warm: House) -> None:
    (digest,) = warm.cache.iterdir()
    digest.chmod(0o500)
    result = warm.run("answer = [int(loops.total(np.arange(4))), loops.total(np.arange(4.0))]")
    digest.chmod(0o700)
    assert (result["answer"], result["hits"], result["unwritable"]) == ([17, 17.0], 1, 2)


def test_full_disk(warm: House) -> None:
    """The kernel works, the count tells, and no half of a file stays behind."""
    full = "def full(*args, **kw): raise OSError(28, 'No space left on device')\ncompile_cache.os.replace = full\n"
    result = warm.run(full + "answer = loops.total(np.arange(4.0))")
    assert (result["answer"], result["written"], result["unwritable"]) == (17.0, 0, 2)
    assert len(warm.files()) == 2
    assert {f.name for f in warm.files()[0].parent.iterdir()} == {".locks", *(f.name for f in warm.files())}


def test_directory_removed_by_another_process(house: House) -> None:
    remove = "compile_cache.cache_info(); import shutil; shutil.rmtree(os.environ['FASTDP_CACHE_DIR'])\n"
    assert house.run(remove + TOTAL)["written"] == 2
    assert house.run()["hits"] == 1


def test_user_cache_directory(house: House) -> None:
    place = Path(house.run(LOOK, FASTDP_CACHE_DIR=None)["place"])
    caches = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
    assert place.parent == house.folder.joinpath("home", *caches, "fastdp", "kernels")


def test_named_places_begin_at_home_or_where_the_process_runs(house: House) -> None:
    assert Path(house.run(LOOK, FASTDP_CACHE_DIR="~/kept")["place"]).parent == house.folder / "home" / "kept"
    assert Path(house.run(LOOK, FASTDP_CACHE_DIR="kept")["place"]).parent == house.folder / "kept"
    assert not (house.folder / "~").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is not for macOS")
def test_xdg_cache_directory(house: House) -> None:
    result = house.run(FASTDP_CACHE_DIR=None, XDG_CACHE_HOME=str(house.folder / "xdg"))
    assert Path(result["place"]).parent == house.folder / "xdg" / "fastdp" / "kernels"
    assert result["written"] == 2


NOBODY = "import pwd\ndef nobody(uid): raise KeyError(uid)\npwd.getpwuid = nobody"


@pytest.mark.parametrize(("home", "before"), [("none", ""), (None, NOBODY)], ids=["nonexistent", "unset"])
def test_missing_home(house: House, home: str | None, before: str) -> None:
    result = house.run(LOOK, before, FASTDP_CACHE_DIR=None, HOME=home and str(house.folder / home))
    place = Path(result["place"])
    assert place.parent == house.folder / "tmp" / f"fastdp-kernels-{os.geteuid()}"
    assert [mode(place.parent), mode(place)] == [0o700, 0o700]
    assert result["state"] == "in use"
    assert not (house.folder / "none").exists()


def test_home_that_cannot_be_written(house: House) -> None:
    (house.folder / "home" / ".cache").touch()
    (house.folder / "home" / "Library").touch()
    result = house.run(FASTDP_CACHE_DIR=None)
    assert Path(result["place"]).parent.parent == house.folder / "tmp"
    assert result["state"].startswith(f"in use, instead of {house.folder / 'home'}")
    assert (result["answer"], result["written"]) == (17, 2)


def test_no_place_at_all(house: House) -> None:
    before = f"{NOBODY}\nimport tempfile\ndef none(): raise FileNotFoundError(2, 'none')\ntempfile.gettempdir = none"
    result = house.run(TOTAL, before, FASTDP_CACHE_DIR=None, HOME=None)
    assert (result["answer"], result["place"], result["written"]) == (17, None, 0)
    assert result["state"] == "off: no home and no temporary directory"


WARNED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    loops.total(np.arange(4)), loops.total(np.arange(4.0))
answer = [[str(w.message), w.category.__name__, w.filename] for w in caught]
"""


def test_a_cache_that_is_off_warns_once_and_says_why(house: House) -> None:
    (house.folder / "file").touch()
    ((message, kind, place),) = house.run(WARNED, FASTDP_CACHE_DIR=str(house.folder / "file"))["answer"]
    assert message.startswith(f"{NOT_KEPT}, so every process will compile its own: {house.folder / 'file'}: ")
    assert message.endswith("; name a folder in FASTDP_CACHE_DIR, or set it to nothing to do without")
    assert (kind, place) == ("RuntimeWarning", "<string>")  # which called
    full = "def full(*args, **kw): raise OSError(28, 'No space left on device')\ncompile_cache.os.replace = full\n"
    ((message, _, _),) = house.run(full + WARNED)["answer"]
    assert f"{house.cache}/" in message
    assert "cannot be written to: No space left on device; name" in message


@pytest.mark.parametrize("place", [None, ""], ids=["a cache in use", "one that the user switched off"])
def test_no_warning_about(house: House, place: str | None) -> None:
    assert house.run(WARNED, FASTDP_CACHE_DIR=place)["answer"] == []


def make_link(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def make_group_writable(path: Path) -> None:
    path.chmod(0o770)


def make_world_writable(path: Path) -> None:
    path.chmod(0o707)


@pytest.mark.parametrize("which", ["root", "digest"])
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(make_link, "symbolic link"), (make_group_writable, "0770"), (make_world_writable, "0707"), (None, "belongs to")],
    ids=["link", "group", "world", "owner"],
)
def test_directory_that_others_could_write_is_refused(warm: House, which: str, spoil: Any, reason: str) -> None:
    (digest,) = warm.cache.iterdir()
    before = ""
    if spoil is not None:
        spoil(warm.cache if which == "root" else digest)
    elif AS_ROOT:
        os.chown(warm.cache if which == "root" else digest, 1, -1)
    elif which == "root":
        before = "me = os.geteuid(); os.geteuid = lambda: me + 1"
    else:
        pytest.skip("only root can give a directory away")
    result = warm.run(TOTAL if spoil is make_link else LOOK, before)
    assert (result["answer"] or 17, result["hits"], result["written"], result["place"]) == (17, 0, 0, None)
    assert result["state"].startswith("off: ")
    assert reason in result["state"]


@pytest.mark.skipif(not AS_ROOT, reason="only root can make a cache of root's")
def test_cache_of_root_is_read_by_another_user(warm: House) -> None:
    """An image is built by root and run by somebody else."""
    for path in (warm.cache, *warm.cache.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    result = warm.run(before="os.geteuid = lambda: 1234")
    assert (result["answer"], result["state"], result["hits"], result["compiled"]) == (17, "in use", 1, [])
    warm.file("loops.total-").chmod(0o664)
    result = warm.run(before="os.geteuid = lambda: 1234")
    assert (result["answer"], result["bad"], result["hits"]) == (17, 1, 1)  # the hit is `bump`


def test_directory_that_is_opened_to_others_later_is_refused(warm: House) -> None:
    result = warm.run(f"os.chmod(compile_cache.cache_info().place, 0o777)\n{TOTAL}")
    assert (result["answer"], result["hits"], result["written"], result["place"]) == (17, 0, 0, None)
    assert "0777" in result["state"]


def test_refused_home_falls_back(house: House) -> None:
    place = Path(house.run(LOOK, FASTDP_CACHE_DIR=None)["place"])
    place.parent.chmod(0o777)
    result = house.run(LOOK, FASTDP_CACHE_DIR=None)
    assert Path(result["place"]).parent.parent == house.folder / "tmp"
    assert "0777" in result["state"]


def test_folders_of_old_interpreters_are_cleared_away(house: House) -> None:
    house.cache.mkdir(mode=0o700)
    old = [house.cache / f"{i:032x}" for i in range(6)]
    for age, path in enumerate(reversed(old)):
        path.mkdir()
        (path / "file").touch()
        os.utime(path, (time.time() - 1000 * age - 1000,) * 2)
    others = [house.cache / "notes", house.cache / f"{99:032x}"]
    others[0].mkdir()
    others[1].symlink_to(others[0])
    new = Path(house.run(LOOK)["place"])
    assert set(house.cache.iterdir()) == {new, *old[3:], *others}
    os.utime(new, (0, 0))
    house.run(LOOK)
    assert time.time() - new.stat().st_mtime < 900, "a folder that is read does not count as old"


def test_files_that_nobody_reads_are_cleared_away(warm: House) -> None:
    """What edits leave behind: the oldest go where all together take too much, and what is read is not old."""
    total, bump = warm.file("loops.total-"), warm.file("helper.bump-")
    unread = [total.parent / f"loops.total-{i:024x}" for i in range(4)]
    for age, path in enumerate([*unread, bump, total]):
        path.write_bytes(path.read_bytes() if path.exists() else bytes(100_000))
        os.utime(path, (time.time() - 10 * 86_400 + age,) * 2)
    limit = f"from fastdp.kernels import cache_folder\ncache_folder._MOST_BYTES = {total.stat().st_size + 350_000}\n"
    result = warm.run(limit + TOTAL)
    assert (result["hits"], result["written"], len(warm.files())) == (1, 0, 6)
    assert time.time() - total.stat().st_mtime < 86_400
    result = warm.run(limit + TOTAL + "\nloops.bump(np.int32(1))")
    assert (result["hits"], result["written"]) == (1, 1)
    assert not unread[0].exists()
    assert all(path.exists() for path in (total, bump, unread[3]))


# ---------------------------------------------------------------------------------------------------------------------
# overloads that only this process can use

USER = "user = numba.njit(lambda x: x * {factor})\nanswer = loops.apply(user, 2)"


def test_overload_typed_on_a_users_function_is_not_written(house: House) -> None:
    for factor in (7, 8):
        result = house.run(USER.format(factor=factor))
        assert (result["answer"], result["private"], result["written"]) == (2 * factor, 1, 0)
    typed = """
user = numba.njit(numba.int64(numba.int64))(lambda x: x * 9)
first_class = numba.types.FunctionType(numba.int64(numba.int64))
loops.apply.compile((first_class, numba.int64))
loops.apply.disable_compile()
answer = loops.apply(user, 2)
"""
    result = house.run(typed)
    assert (result["answer"], result["private"], result["written"]) == (18, 1, 0)
    assert house.files() == []


def test_kernel_outside_the_package_is_not_written(house: House) -> None:
    code = "@compile.jit\ndef mine(x):\n    return loops.bump(x) + {}\nanswer = mine(1)"
    for n in (1, 2):
        result = house.run(code.format(n))
        assert (result["answer"], result["private"]) == (3 + n, 1)
    assert [f.name.split("-")[0] for f in house.files()] == ["helper.bump"]


CLOSURES = (
    """
from .compile import jit
from .helper import bump

def make(c, f):
    @jit
    def inner(x):
        s = x
"""
    + "".join(f"        for _ in range(s % {i + 3}):\n            s = (s * x + c) % 1000003 + {i}\n" for i in range(14))
    + """
        return f(s)

    @jit
    def outer(x):
        return inner(x) + inner(x + 1)

    return outer

three, four = make(3, bump), make(4, bump)
"""
)


def test_closures_of_one_definition_are_kept_apart(house: House) -> None:
    """Their symbols differ by a number that numba counts from 1 in each process; `inner` is too long to be inlined."""
    house.write("loops", CLOSURES)
    answers = [house.run(f"answer = loops.{name}(2)")["answer"] for name in ("three", "four")]
    assert answers[0] != answers[1]
    for first, second in (("three", "four"), ("four", "three")):
        result = house.run(f"loops.{first}(2), loops.{second}(2)\nanswer = [loops.three(2), loops.four(2)]")
        assert (result["answer"], result["hits"], result["compiled"]) == (answers, 2, [])


def test_closure_over_a_users_function_is_not_written(house: House) -> None:
    house.write("loops", CLOSURES)
    for factor in (7, 8):
        make = f"user = numba.njit(lambda x: x * {factor})\nanswer = loops.make(3, user)(2)"
        result = house.run(make)
        assert (result["answer"] % factor, result["private"], result["written"]) == (0, 2, 0)


SORTS = """
import numpy as np
from .compile import jit

@jit
def sort_first(x):
    return np.sort(x)[0]

@jit
def argsort_first(x):
    return np.argsort(x)[0]
"""


def test_numba_closures_of_two_kernels_are_kept_apart(house: House) -> None:
    """np.sort and np.argsort share numba's quicksort, as closures whose symbols clash where their numbers do."""
    house.write("loops", SORTS)
    x = "x = np.arange(60.0)[::-1].copy()\n"
    house.run(x + "answer = loops.sort_first(x)")
    shift = "\n".join("numba.njit(lambda x: x)(1)" for _ in range(3))  # gives both quicksorts the same numbers
    house.run(x + "answer = int(loops.argsort_first(x))", before=shift)
    result = house.run(x + "answer = [loops.sort_first(x), int(loops.argsort_first(x))]")
    assert (result["answer"], result["hits"]) == ([0.0, 59], 2)


def test_code_that_the_host_had_compiled_is_not_written(house: House) -> None:
    house.write("loops", SORTS)
    host = "numba.njit(lambda x: np.sort(x))(np.arange(60.0))"
    result = house.run("answer = loops.sort_first(np.arange(60.0)[::-1].copy())", before=host)
    assert (result["answer"], result["private"], result["written"]) == (0.0, 1, 0)


# ---------------------------------------------------------------------------------------------------------------------
# many processes

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float64"]


def test_eight_processes_at_once(house: House) -> None:
    """Eight compile different overloads of one kernel, a ninth finds all of them."""
    processes = [house.start(f"answer = int(loops.total(np.arange(4, dtype='{d}')))") for d in DTYPES]
    assert [finish(p)["answer"] for p in processes] == [17] * 8
    ninth = house.run(f"answer = [int(loops.total(np.arange(4, dtype=d))) for d in {DTYPES}]")
    assert (ninth["answer"], ninth["hits"], ninth["misses"], ninth["bad"]) == ([17] * 8, 8, 0, 0)
    assert ninth["compiled"] == []


TOGETHER = """
compile_apart = compile_cache._compile_apart
def slowly(*args):
    {slowly}
    return compile_apart(*args)
compile_cache._compile_apart = slowly
"""


def once(code: str) -> str:
    """The first kernel that is compiled runs this, while its process holds the lock."""
    return TOGETHER.format(slowly="compile_cache._compile_apart = compile_apart\n    " + code.replace("\n", "\n    "))


def wait_for(path: Path, process: Process) -> None:
    until = time.time() + 1800
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.time() < until
        time.sleep(0.01)


def test_processes_that_start_together_compile_once(house: House) -> None:
    processes = [house.start(TOGETHER.format(slowly="time.sleep(0.5)") + TOTAL) for _ in range(4)]
    results = [finish(p) for p in processes]
    assert [r["answer"] for r in results] == [17] * 4
    assert sum(r["misses"] for r in results) == sum(r["written"] for r in results) == 2  # total and bump
    assert all(r["hits"] >= 1 for r in results if r["misses"] == 0)


DIES = "open('started', 'w').close()\ntime.sleep(600)"


def test_a_process_that_is_killed_while_it_compiles(house: House) -> None:
    first = house.start(once(DIES) + TOTAL)
    wait_for(house.folder / "started", first)
    second = house.start()
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(3)  # it waits
    first.kill()
    first.communicate()
    result = finish(second)
    assert (result["answer"], result["written"]) == (17, 2)


def test_a_process_that_stands_still_is_not_waited_for_forever(house: House) -> None:
    first = house.start(once(DIES) + TOTAL)
    wait_for(house.folder / "started", first)
    result = house.run("from fastdp.kernels import cache_folder\ncache_folder._PATIENCE = 0.5\n" + TOTAL)
    first.kill()
    first.communicate()
    assert (result["answer"], result["written"]) == (17, 2)


# The exception of a signal handler that runs while LLVM hands over the machine code of the `WHICH`th library, and an
# object whose finalizer fails there.
INTERRUPTED_CALLBACK = """
import signal
import numba.core.codegen
received, handed = [], []
sys.unraisablehook = hook_before = lambda unraisable: received.append(repr(unraisable.exc_value))
class Stop(Exception): pass
def stop(*args): raise KIND
signal.signal(signal.SIGINT, stop)
class Failing:
    def __del__(self): raise ValueError("passed on")
library = numba.core.codegen.CPUCodeLibrary
real = library._object_compiled_hook.__func__
def interrupted(cls, module, buf):
    handed.append(1)
    if len(handed) == WHICH:
        Failing()
        os.kill(os.getpid(), signal.SIGINT)
    real(cls, module, buf)
library._object_compiled_hook = classmethod(interrupted)
"""
INTERRUPTED_CALL = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        result = loops.total(np.arange(4))
    except BaseException as error:
        result = type(error).__name__
answer = [result, len(handed), received, len(caught), sys.unraisablehook is hook_before, int(loops.total(np.arange(4)))]
"""


@pytest.mark.parametrize(
    ("kind", "which", "handed"),
    [("KeyboardInterrupt", 1, 2), ("KeyboardInterrupt", 3, 3), ("Stop", 3, 3)],
    ids=["in numba's runtime, of two libraries", "in the kernel", "a handler's own exception"],
)
def test_an_interrupt_while_llvm_hands_over_code_is_raised(house: House, kind: str, which: int, handed: int) -> None:
    """ctypes drops what is raised in the callback: it comes at the end of that compilation, and no warning."""
    before = INTERRUPTED_CALLBACK.replace("KIND", kind).replace("WHICH", str(which))
    result = house.run(INTERRUPTED_CALL, before, forked=False)
    assert result["answer"] == [kind, handed, ["ValueError('passed on')"], 0, True, 17]
    assert (result["written"], result["unwritable"]) == (2, 0)


# a child that lives on, with the parent's descriptors, after the parent was killed
LEAVES_A_CHILD = """
if (child := os.fork()) == 0:
    time.sleep(600)
open('child', 'w').write(str(child))
os.rename('child', 'left')
os.kill(os.getpid(), 9)
"""
GOES_ON = """
try:
    loops.total(np.arange(4))
except KeyboardInterrupt:
    open('left', 'w').close()
    time.sleep(600)
"""


@pytest.mark.parametrize("leave", ["raise KeyboardInterrupt", LEAVES_A_CHILD], ids=["interrupted", "forked and killed"])
def test_nothing_stays_locked(house: House, leave: str) -> None:
    first = house.start(once(leave) + GOES_ON)
    left = house.folder / "left"
    try:
        until = time.time() + 1800
        while not left.exists() and time.time() < until:
            time.sleep(0.01)
        patience = "from fastdp.kernels import cache_folder\ncache_folder._PATIENCE = 1e9\n"
        result = house.run(patience + TOTAL)  # it would hang
        assert (result["answer"], result["written"]) == (17, 2)
    finally:
        first.kill()
        if child := left.read_text():
            os.kill(int(child), 9)
        first.communicate()


@pytest.mark.parametrize(
    "broken",
    [
        "cache_folder.fcntl = None",
        "def no_locks(*args): raise OSError(37, 'No locks available')\ncache_folder.fcntl.lockf = no_locks",
        "os.mkfifo(os.path.join(compile_cache.cache_info().place, '.locks'))",
    ],
    ids=["none on this system", "none on this file system", "a pipe in their place"],
)
def test_without_locks_each_process_compiles(house: House, broken: str) -> None:
    code = f"from fastdp.kernels import cache_folder\n{broken}\n{TOTAL}"
    result = house.run(code)
    assert (result["answer"], result["written"], result["state"]) == (17, 2, "in use")


def test_forked_children_number_their_symbols_apart(house: House) -> None:
    house.write("loops", CLOSURES)
    code = """
for name in ("three", "four"):
    if not (pid := os.fork()):
        getattr(loops, name)(2)
        os._exit(0)
    os.waitpid(pid, 0)
answer = [loops.three(2), loops.four(2)]
"""
    result = house.run(code)
    assert (result["hits"], result["compiled"]) == (2, [])
    assert result["answer"][0] != result["answer"][1]


WAIT = """
def wait(pid, seconds=1800):
    end = time.time() + seconds
    while time.time() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hung"
"""


def test_fork_during_a_compilation(house: House) -> None:
    code = """
started = threading.Event()

class Slow(numba.core.event.Listener):  # called under numba's compiler lock
    def on_start(self, event):
        started.set()
        time.sleep(0.3)
    def on_end(self, event):
        pass

def compile_slowly():
    with numba.core.event.install_listener("numba:compile", Slow()):
        loops.total(np.arange(4))

thread = threading.Thread(target=compile_slowly)
thread.start()
started.wait()
if not (pid := os.fork()):
    os._exit(int(loops.total(np.arange(4.0))))
answer = wait(pid)
thread.join()
"""
    assert house.run(WAIT + code)["answer"] == 17


def test_fork_while_llvm_is_busy(house: House) -> None:
    code = """
import llvmlite.binding as llvm
held = threading.Event()

def hold():
    with llvm.ffi.lib._lock:
        held.set()
        time.sleep(0.3)

thread = threading.Thread(target=hold)
thread.start()
held.wait()
if not (pid := os.fork()):
    os._exit(int(loops.total(np.arange(4.0))))
answer = wait(pid)
thread.join()
"""
    assert house.run(WAIT + code)["answer"] == 17


def test_fork_by_the_thread_that_compiles(house: House) -> None:
    """Parent and child both hold the lock as before, and both let go of it."""
    code = """
from numba.core.compiler_lock import global_compiler_lock as lock

def compile_elsewhere():
    results = []
    thread = threading.Thread(target=lambda: results.append(int(loops.total(np.arange(4.0)))), daemon=True)
    thread.start()
    thread.join(0.1 if lock.is_locked() else 1800)
    return list(results)

with lock:
    pid = os.fork()
    inside = compile_elsewhere()
outside = compile_elsewhere()
if not pid:
    os._exit(17 if (inside, outside) == ([], [17]) else 1)
answer = [inside, outside, wait(pid)]
"""
    assert house.run(WAIT + code)["answer"] == [[], [17], 17]


# ---------------------------------------------------------------------------------------------------------------------
# a guest in its host


def test_settings_of_numba_and_of_the_environment_are_untouched(house: House) -> None:
    before = """
import numba.core.bytecode
def settings():
    identity = numba.core.bytecode.FunctionIdentity
    config = {k: repr(v) for k, v in vars(numba.config).items() if k.isupper()}
    return config, dict(os.environ), id(identity._unique_ids), repr(numba.core.caching.CacheImpl._locator_classes)
old = settings()
"""
    code = f"""
{TOTAL}
answer = [answer, settings() == old, len(old[0]) > 50]
try:
    loops.total(1)
except numba.TypingError:
    answer.append(settings() == old)
"""
    result = house.run(code, before)
    assert result["answer"] == [17, True, True, True]
    assert result["written"] == 2


def test_options_of_every_kernel(house: House) -> None:
    house.write("loops", LOOPS + "\n@jit(fastmath={'reassoc'})\ndef add(a):\n    return a.sum()\n")
    code = """
answer = {f.__name__: {k: sorted(v) if isinstance(v, set) else v for k, v in f.targetoptions.items()}
          for f in (loops.total, loops.bump, loops.add)}
"""
    options = house.run(code)["answer"]
    for kernel in options.values():
        assert (kernel["nogil"], kernel["error_model"], kernel.get("parallel", False)) == (True, "numpy", False)
    assert [options[k].get("fastmath", False) for k in ("total", "bump", "add")] == [False, False, ["reassoc"]]
    assert [options[k]["forceinline"] for k in ("total", "bump", "add")] == [False, True, False]


def test_fastmath_that_assumes_finite_numbers_is_refused(house: House) -> None:
    code = """
try:
    compile.jit(fastmath={"nnan", "reassoc"})
except ValueError as error:
    answer = str(error)
"""
    assert house.run(code)["answer"] == "fastmath=['nnan']: must be a subset of {'reassoc', 'contract', 'nsz'}"


# ---------------------------------------------------------------------------------------------------------------------
# parts

NEST = """
from .compile import jit
from .helper import bump

@jit
def middle(x):
    return bump(x) + bump(x + 1)

@jit
def checked(a, i):
    if i < 0:
        raise ValueError("negative", i)
    return a[i]

@jit
def top(a):
    s = 0
    for i in range(a.size):
        s += middle(a[i]) * checked(a, i)
    return s

@jit
def other(a):
    return middle(a[0])

@jit
def falling(n):
    return 1 if n <= 1 else n * falling(n - 1)

@jit
def sum_falling(n):
    return falling(n) + falling(n + 1)
"""
TOP = "answer = [int(loops.top(np.arange(3)))]\n"  # 0 + 1 * 8 + 2 * 12


def test_a_part_has_no_machine_code_and_is_called_from_python_all_the_same(house: House) -> None:
    house.write("loops", NEST)
    result = house.run(f"{TOP}answer += [loops.middle(2), loops.middle(2), loops.checked(np.arange(3), 2)]")
    assert result["answer"] == [32, 12, 12, 2]
    assert sorted(result["compiled"]) == [
        "bump",
        "checked",
        "checked",
        "middle",
        "middle",
        "top",
    ]  # bump is a part twice
    again = house.run(f"{TOP}answer += [loops.middle(2), loops.checked(np.arange(3), 2)]")
    assert (again["answer"], again["compiled"], again["hits"]) == ([32, 12, 2], [], 3)


def test_a_part_from_disk_is_linked_into_another_kernel(house: House) -> None:
    house.write("loops", NEST)
    assert house.run(TOP)["written"] == 4
    result = house.run("answer = int(loops.other(np.arange(3)))")
    assert (result["answer"], result["compiled"], result["hits"]) == (4, ["other"], 1)


def test_a_part_that_raises_names_its_values(house: House) -> None:
    """Through its environment, which its caller's machine code must know: compiled, loaded, and called by itself."""
    house.write("loops", NEST + "\n@jit\ndef asks(a, i):\n    return checked(a, i)\n")
    code = """
answer = []
for kernel in (loops.asks, loops.checked):
    try:
        kernel(np.arange(3), -7)
    except ValueError as error:
        answer.append(list(error.args))
"""
    for _ in range(2):
        assert house.run(code)["answer"] == [["negative", -7]] * 2


def test_parts_that_call_themselves(house: House) -> None:
    house.write("loops", NEST)
    for _ in range(2):
        assert house.run("answer = [loops.sum_falling(5), loops.falling(6)]")["answer"] == [840, 720]


def test_a_users_function_calls_a_kernel_that_was_a_part(house: House) -> None:
    house.write("loops", NEST)
    code = f"{TOP}answer.append(numba.njit(lambda x: loops.middle(x) + 1)(2))"
    assert house.run(code)["answer"] == [32, 13]


def test_a_part_that_fails_leaves_nothing_behind(house: House) -> None:
    house.write("loops", NEST + "\n@jit\ndef bad(x):\n    return x.nothing\n@jit\ndef worse(x):\n    return bad(x)\n")
    code = """
codegen = numba.core.registry.cpu_target.target_context.codegen()
try:
    loops.worse(1)
except numba.core.errors.TypingError:
    answer = ["create_library" in vars(codegen), "_customize_flags" in vars(loops.bad._compiler)]
answer.append(int(loops.top(np.arange(3))))
"""
    assert house.run(code)["answer"] == [False, False, 32]


LARGE = (
    "from .compile import jit\n\n@jit\ndef large(a, x):\n"
    + "".join(f"    x = (x * {2 * i + 3} + a[{i} % a.size]) ^ (x >> {i % 7 + 1})\n" for i in range(60))
    + """    return x

@jit
def larger(a, x):
    return large(a, large(a, x)) + large(a, x + 1)

@jit
def between(a, x):
    return large(a, x + 2)

@jit
def first(a):
    return between(a, 1) + larger(a, 3)

@jit
def second(a):
    return between(a, 4) - large(a, 5)

@jit
def above(a):
    return first(a) + second(a)
"""
)
ASKED = """
def plain(x):
    a = [3, 1, 4, 1, 5]
    for i in range(60):
        x = (x * (2 * i + 3) + a[i % 5]) ^ (x >> i % 7 + 1)
        x = (x + 2**63) % 2**64 - 2**63  # as int64 goes around
    return x

def around(x):
    return (x + 2**63) % 2**64 - 2**63

a = np.array([3, 1, 4, 1, 5])
one = around(plain(3) + plain(plain(3)) + plain(4))
two = around(plain(6) - plain(5))
"""


def copies(of: str, called: str = "large") -> str:
    """How many functions of a name there are in the machine code of a kernel."""
    library = f"loops.{of}.overloads[loops.{of}.signatures[0]].library"
    return f"sum('5{called}' in f.name and not f.is_declaration for f in {library}._final_module.functions)"


def test_a_large_part_is_in_its_callers_code_once(house: House) -> None:
    """Through parts small and large, by way of each of them, and in kernels that call kernels."""
    house.write("loops", LARGE)
    code = f"answer = [int(loops.first(a)) == one, {copies('first')}, int(loops.second(a)) == two, {copies('second')}]"
    assert house.run(ASKED + code)["answer"] == [True, 1, True, 1]
    code = f"answer = [int(loops.above(a)) == around(one + two), {copies('above')}]"
    assert house.run(ASKED + code)["answer"] == [True, 1]


def test_a_large_part_is_optimised_once(house: House) -> None:
    house.write("loops", LARGE)
    before = """
import numba.core.codegen
sizes = []
make = numba.core.codegen.CPUCodegen._module_pass_manager
def watched(self, *arguments, **options):
    made = make(self, *arguments, **options)
    class Passes:
        def run(self, module, *more):
            names = [f.name for f in module.functions if not f.is_declaration]
            sizes.append(sum("5large" in name for name in names))
            made[0].run(module, *more)
    return (Passes(), *made[1:])
if hasattr(numba.core.codegen, "create_pass_builder"):
    numba.core.codegen.CPUCodegen._module_pass_manager = watched
"""
    result = house.run(
        ASKED + "from fastdp.kernels import parts\nloops.first(a)\nloops.second(a)\nanswer = [sum(sizes), parts._ONCE]",
        before,
    )
    times, once = result["answer"]
    assert times == int(once)


def test_large_parts_from_disk(house: House) -> None:
    house.write("loops", LARGE)
    assert house.run(ASKED + "answer = int(loops.first(a)) == one")["answer"] is True
    result = house.run(ASKED + f"answer = [int(loops.second(a)) == two, {copies('second')}]")
    assert (result["answer"], result["compiled"], result["hits"]) == ([True, 1], ["second"], 2)
    result = house.run(ASKED + "answer = [int(loops.first(a)) == one, int(loops.second(a)) == two]")
    assert (result["answer"], result["compiled"], result["hits"]) == ([True, True], [], 2)


def test_a_users_function_calls_kernels_of_large_parts(house: House) -> None:
    house.write("loops", LARGE)
    code = """
loops.second(a)  # between and large are parts
users = numba.njit(lambda a: loops.first(a) + loops.between(a, 4) - loops.large(a, 5))
answer = int(users(a)) == around(one + two)
"""
    assert house.run(ASKED + code)["answer"] is True


# ---------------------------------------------------------------------------------------------------------------------
# types of calls


def test_types_of_calls_are_resolved_once(house: House) -> None:
    """While kernels are compiled, and for types alone that have a name."""
    house.write("loops", NEST)
    code = """
from fastdp.kernels import call_types
typing = numba.core.registry.cpu_target.typing_context
asked = []
resolve = type(typing).resolve_function_type
def watched(self, function, arguments, keywords):
    asked.append((str(function), tuple(map(str, arguments))))
    return resolve(self, function, arguments, keywords)
type(typing).resolve_function_type = watched
loops.top(np.arange(3))
loops.other(np.arange(3))
sums = [pair for pair in asked if "add" in pair[0] and pair[1] == ("int64", "int64")]
known = [kind for _, kinds, _ in call_types._resolved for kind in kinds]
answer = [len(sums), all(compile_cache._is_plain(kind, set()) for kind in known), call_types._flags == {}]
answer.append("resolve_function_type" in vars(typing))
"""
    flags = 2  # those of a helper that is inlined, those of the others
    [sums, *rest] = house.run(code)["answer"]
    assert 1 <= sums <= flags + 1, "one that is a literal, too"
    assert rest == [True, True, False]


def test_types_of_calls_that_fail_are_asked_for_again(house: House) -> None:
    house.write("loops", "from .compile import jit\n\n@jit\ndef add(a, b):\n    return a + b\n")
    code = """
typing = numba.core.registry.cpu_target.typing_context
answer = []
for _ in range(2):
    try:
        loops.add(1, None)
    except numba.core.errors.TypingError:
        answer.append("resolve_function_type" in vars(typing))
answer.append(loops.add(1, 2))
"""
    assert house.run(code)["answer"] == [False, False, 3]


# ---------------------------------------------------------------------------------------------------------------------
# arrays that are only read

READS = """
from .compile import jit

@jit(reads=("a",))
def add(a, out):
    for i in range(a.size):
        out[i] += a[i]

@jit
def add_twice(a, out):
    add(a, out)
    add(out=out, a=a)

@jit(reads=("a",))
def clear(a):
    a[0] = 0
"""
ARRAYS = """
free, fixed, out = np.arange(3), np.arange(3), np.zeros(3, np.int64)
fixed.flags.writeable = False
"""


def test_arrays_that_are_only_read_are_compiled_for_once(house: House) -> None:
    house.write("loops", READS)
    for _ in range(2):
        code = ARRAYS + "for a in (free, fixed, free): loops.add(a, out)\nanswer = out.tolist(), len(compiled)"
        result = house.run(code)
        assert result["answer"][0] == [0, 3, 6]
        assert result["misses"] + result["hits"] == 1
    code = ARRAYS + "loops.add(fixed, out)\nloops.add(free, out)\nloops.add(a=free, out=free)\nanswer = free.tolist()"
    result = house.run(code)
    assert (result["answer"], result["compiled"], result["hits"]) == ([0, 2, 4], [], 1)


def test_kernels_and_users_functions_share_what_only_reads(house: House) -> None:
    house.write("loops", READS)
    code = ARRAYS + "for a in (free, fixed): loops.add_twice(a, out)\n"
    code += "numba.njit(lambda a, out: loops.add(a, out))(free, out)\n"
    code += "loops.add(free, out)\nanswer = out.tolist()"
    result = house.run(code)
    assert result["answer"] == [0, 6, 12]
    assert result["compiled"].count("add") == 2  # a part, then a kernel


def test_what_is_said_to_be_read_cannot_be_written(house: House) -> None:
    house.write("loops", READS)
    code = """
answer = []
for a in (free, fixed):
    try:
        loops.clear(a)
    except numba.core.errors.TypingError as error:
        answer.append("readonly" in str(error))
"""
    assert house.run(ARRAYS + code)["answer"] == [True, True]
