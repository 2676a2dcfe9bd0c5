"""Compiled kernels that come with the package (kernels/shipped.py), in a small fastdp: loaded, or refused, by others.

What processes have compiled is counted, never how long they took.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import llvmlite.binding
import pytest

from fastdp.kernels import shipped
from fastdp.kernels.shipped import TARGETS, Target, target_of, targets_within
from fastdp.support import machine
from tests.forked import Parent
from tests.kernels.small_fastdp import AS_ROOT, HELPER, TOTAL, House

HOST = machine.target()
WITHIN = tuple(targets_within(HOST[2])) if HOST[0].startswith("x86_64") else ()
pytestmark = pytest.mark.skipif(not WITHIN, reason="archives are for x86-64 processors with AES instructions")
NOWHERE = {"FASTDP_CACHE_DIR": None, "HOME": "/dev/null/home", "TMPDIR": "/dev/null/tmp"}
NO_FOLDER = "import tempfile\ndef none(): raise FileNotFoundError(2, 'none')\ntempfile.gettempdir = none"
WARNINGS = f"""
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {TOTAL}
answer = [answer, len(caught)]
"""


def as_told(target: Target) -> dict[str, str | None]:
    """numba's settings for a class of processors."""
    return {"NUMBA_CPU_NAME": target.cpu, "NUMBA_CPU_FEATURES": target.features}


def install(house: House, target: Target) -> Path:
    """What a warm process of this class loads, as an archive beside the sources."""
    made = house.run(**as_told(target))
    assert (made["answer"], made["written"]) == (17, 2)
    code = f"{TOTAL}\nanswer = list(compile_cache.files_used)"
    files = house.run(code, **as_told(target))["answer"]
    (folder,) = house.cache.iterdir()
    path = house.kernels / shipped.COMPILED / f"{folder.name}-{target.name}.zip"
    shipped.write_archive(str(path), [str(folder / file) for file in files])
    assert [member.split("-")[0] for member in ZipFile(path).namelist()] == ["loops.total"]  # helpers are part of it
    shutil.rmtree(house.cache)
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, parent: Parent) -> Path:
    house = House(tmp_path_factory.mktemp("installed"), parent)
    return install(house, WITHIN[0])


@pytest.fixture
def brought(house: House, installed: Path) -> House:
    """A house whose package has brought `total` for int64; its cache is empty."""
    shutil.copytree(installed.parent, house.kernels / shipped.COMPILED)
    return house


def archive(house: House) -> Path:
    (path,) = house.kernels.joinpath(shipped.COMPILED).iterdir()
    return path


# --- which class


def test_classes_are_from_wide_to_narrow() -> None:
    """The first that a processor has is its class, so none may come before one that wants more of the same."""
    for i, target in enumerate(TARGETS):
        assert not any(target.needs <= later.needs for later in TARGETS[i + 1 :])
        assert {f"+{name}" for name in target.needs} >= {f for f in target.features.split(",") if f[0] == "+"}
    assert len({target.name for target in TARGETS}) == len(TARGETS)


PROBES = {  # what LLVM makes of it where it may use this feature
    "fma": ("double @f(double %a) {\n%r = call double @llvm.fma.f64(double %a, double %a, double %a)\nret double %r\n}"
            "\ndeclare double @llvm.fma.f64(double, double, double)", "vfmadd"),
    "popcnt": ("i64 @f(i64 %a) {\n%r = call i64 @llvm.ctpop.i64(i64 %a)\nret i64 %r\n}\n"
               "declare i64 @llvm.ctpop.i64(i64)", "popcnt"),
    "bmi2": ("i64 @f(i64 %a, i64 %b) {\n%r = shl i64 %a, %b\nret i64 %r\n}", "shlx"),
    "avx2": ("<4 x i64> @f(<4 x i64> %a) {\n%r = add <4 x i64> %a, %a\nret <4 x i64> %r\n}", "%ymm"),
    "avx512f": ("<8 x i64> @f(<8 x i64> %a) {\n%r = add <8 x i64> %a, %a\nret <8 x i64> %r\n}", "%zmm"),
    "avx512dq": ("<8 x i64> @f(<8 x i64> %a) {\n%r = mul <8 x i64> %a, %a\nret <8 x i64> %r\n}", "vpmullq"),
    "avx512vpopcntdq": ("<8 x i64> @f(<8 x i64> %a) {\n%r = call <8 x i64> @llvm.ctpop.v8i64(<8 x i64> %a)\n"
                        "ret <8 x i64> %r\n}\ndeclare <8 x i64> @llvm.ctpop.v8i64(<8 x i64>)", "vpopcntq"),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_llvm_uses_for_a_class_what_it_needs_and_no_more(target: Target) -> None:
    triple = "x86_64-unknown-linux-gnu"
    machine_of = llvmlite.binding.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features
    )
    for feature, (text, instruction) in PROBES.items():
        assembly = machine_of.emit_assembly(
            llvmlite.binding.parse_assembly(f'target triple = "{triple}"\ndefine {text}')
        )
        assert (instruction in assembly) == (feature in target.needs), feature


HAS = (
    "+64bit,+aes,+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
WIDE = "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"


@pytest.mark.parametrize(
    ("features", "name"),
    [
        (f"{HAS},{WIDE},+vaes,+avx512vnni", "x86-64-v4+aes+vaes+avx512vnni"),
        (f"{HAS},{WIDE},-vaes", "x86-64-v4+aes"),
        (f"{HAS},+vaes,-avx512f", "x86-64-v3+aes+vaes"),
        (HAS, "x86-64-v3+aes"),
        (HAS.replace("+avx2,", ""), "x86-64-v2+aes"),
        (f"{HAS},{WIDE}".replace("+avx512vl", "-avx512vl"), "x86-64-v3+aes"),
        (HAS.replace("+aes", "-aes"), None),
        ("", None),
    ],
)
def test_class_of_a_processor(features: str, name: str | None) -> None:
    found = target_of("x86_64-unknown-linux-gnu", llvmlite.binding.get_host_cpu_name(), features)
    assert (found.name if found else None) == name


def test_a_processor_that_a_user_names_has_no_class() -> None:
    triple = "x86_64-unknown-linux-gnu"
    assert target_of(triple, "a processor", HOST[2]) is None
    assert target_of("aarch64-unknown-linux-gnu", HOST[1], f"{HAS},{WIDE}") is None
    for target in TARGETS:
        assert target_of(triple, target.cpu, target.features) is target


# --- what is loaded


def test_a_fresh_process_compiles_nothing(brought: House) -> None:
    result = brought.run()
    assert (result["answer"], result["compiled"], result["misses"], result["written"]) == (17, [], 0, 0)
    assert (result["hits"], result["shipped"], result["shipped_state"]) == (1, 1, "in use")
    assert brought.files() == []


def test_where_nothing_can_be_written_and_by_another_user(brought: House) -> None:
    """A container: no home, no temporary folder, the package is root's. And no warning: nothing is lost."""
    path = archive(brought)
    path.chmod(0o444)
    for folder in (path.parent, brought.kernels):
        folder.chmod(0o555)
    result = brought.run(WARNINGS, f"{NO_FOLDER}\n{'os.geteuid = lambda: 1234' if AS_ROOT else ''}", **NOWHERE)
    assert (result["answer"], result["compiled"], result["place"], result["shipped"]) == ([17, 0], [], None, 1)


def test_every_class_that_runs_here_gives_the_same(house: House) -> None:
    """Each in turn, and each is used by a process that is told to be of it; the widest by one that is told nothing."""
    for target in dict.fromkeys((WITHIN[0], WITHIN[-1])):
        install(house, target)
        result = house.run(FASTDP_CACHE_DIR=str(house.folder / target.name), **as_told(target))
        assert (result["answer"], result["compiled"], result["shipped"]) == (17, [], 1)
    result = house.run(TOTAL)
    assert (result["answer"], result["compiled"], result["shipped"]) == (17, [], 1)


def test_other_types_are_compiled_beside_it(brought: House) -> None:
    result = brought.run("answer = [int(loops.total(np.arange(4))), float(loops.total(np.arange(4.0)))]")
    assert (result["answer"], result["shipped"], result["written"]) == ([17, 17.0], 1, 2)


def test_it_can_be_compiled_into_a_new_caller(brought: House) -> None:
    brought.write(
        "callers", "from .compile import jit\nfrom .loops import total\n@jit\ndef twice(a):\n    return 2 * total(a)"
    )
    result = brought.run("from fastdp.kernels import callers\nanswer = int(callers.twice(np.arange(4)))")
    assert (result["answer"], result["compiled"], result["shipped"]) == (34, ["twice"], 1)
    again = brought.run("from fastdp.kernels import callers\nanswer = int(callers.twice(np.arange(4)))")
    assert (again["answer"], again["compiled"], again["hits"], again["shipped"]) == (34, [], 1, 0)


def test_the_users_own_cache_comes_first(brought: House) -> None:
    moved = archive(brought).rename(brought.folder / "away")
    assert brought.run()["written"] == 2
    moved.rename(brought.kernels / shipped.COMPILED / next(brought.cache.iterdir()).name)
    assert brought.run()["shipped"] == 0


# --- what is not


def edit_a_helper(house: House) -> None:
    house.write("helper", HELPER.replace("+ 1", "+ 2"))


def other_versions(house: House) -> None:
    path = archive(house)
    path.rename(path.with_name("0" * 32 + path.name[32:]))


def cut_off(house: House) -> None:
    path = archive(house)
    path.write_bytes(path.read_bytes()[:-100])


def alter(house: House) -> None:
    """One bit of the machine code, with the checksum of the archive mended."""
    path = archive(house)
    with ZipFile(path) as old:
        members = {name: bytearray(old.read(name)) for name in old.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as new:
        for name, content in members.items():
            content[len(content) // 2] ^= 1
            new.writestr(name, bytes(content))


def other_key(house: House) -> None:
    """Another kernel under this one's name: the key is within."""
    path = archive(house)
    with ZipFile(path) as old:
        ((name, content),) = ((name, bytearray(old.read(name))) for name in old.namelist())
    content[16] ^= 1
    with ZipFile(path, "w", ZIP_DEFLATED) as new:
        new.writestr(name, bytes(content))


def let_others_write(house: House) -> None:
    archive(house).chmod(0o666)


def let_others_write_the_folder(house: House) -> None:
    archive(house).parent.chmod(0o777)


def let_the_group_write(house: House) -> None:
    house.kernels.chmod(0o755)
    archive(house).chmod(0o664)


def link(house: House) -> None:
    path = archive(house)
    path.symlink_to(path.rename(house.folder / "elsewhere"))


def pipe(house: House) -> None:
    path = archive(house)
    path.unlink()
    os.mkfifo(path)


def give_away(house: House) -> None:
    if not AS_ROOT:
        pytest.skip("only root can give a file away")
    os.chown(archive(house), 1, -1)


@pytest.mark.parametrize(
    "spoil",
    [edit_a_helper, other_versions, cut_off, alter, other_key, let_others_write, let_others_write_the_folder,
     let_the_group_write, link, pipe, give_away],
    ids=lambda spoil: spoil.__name__,
)  # fmt: skip
def test_what_is_not_as_it_was_made_is_compiled(brought: House, spoil: Any) -> None:
    spoil(brought)
    result = brought.run()
    assert (result["answer"], result["shipped"], result["hits"]) == (22 if spoil is edit_a_helper else 17, 0, 0)
    assert sorted(result["compiled"]) == ["bump", "total"]
    if spoil in (let_others_write, let_others_write_the_folder, let_the_group_write, give_away):
        assert "can be written by others than" in result["shipped_state"]


def test_whoever_may_write_the_sources_may_write_the_archive(brought: House) -> None:
    """Such as the group of somebody whose files are all open to it: it is no danger beyond that."""
    brought.kernels.chmod(0o775)
    for path in (archive(brought), archive(brought).parent):
        path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IWGRP)
    assert brought.run()["shipped"] == 1


@pytest.mark.parametrize(
    "env",
    [{"FASTDP_CACHE_DIR": ""}, {"NUMBA_OPT": "1"}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}],
    ids=lambda env: next(iter(env)),
)
def test_settings_that_ask_for_other_code(brought: House, env: dict[str, str]) -> None:
    result = brought.run(**env)
    assert (result["answer"], result["shipped"], sorted(result["compiled"])) == (17, 0, ["bump", "total"])


def test_sources_that_change_under_a_process(brought: House) -> None:
    edit = "time.sleep(0.05); open(os.path.join(os.path.dirname(loops.__file__), 'helper.py'), 'a').write('# edited')"
    result = brought.run(f"compile_cache.cache_info()\n{edit}\n{TOTAL}")
    assert (result["answer"], result["shipped"]) == (17, 0)
    assert "changed" in result["shipped_state"]


# --- how it is made


def test_an_archive_of_the_same_files_is_the_same(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    for number, order in enumerate((("a", "b"), ("b", "a"))):
        shipped.write_archive(str(tmp_path / f"{number}" / "archive"), [str(tmp_path / name) for name in order])
        os.utime(tmp_path / "a", (0, 0))
    assert (tmp_path / "0" / "archive").read_bytes() == (tmp_path / "1" / "archive").read_bytes()
    with pytest.raises(FileNotFoundError):
        shipped.write_archive(str(tmp_path / "0" / "archive"), [str(tmp_path / "c")])
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["archive"]
