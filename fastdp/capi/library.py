"""Writes the header, the library and the pkg-config file.

The library holds the place of this environment's interpreter and of this fastdp, so it needs nothing of its host's
environment; whoever moves or upgrades the environment writes it anew.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from .text import digest, fronts, header, inner_cdef

MODULE = "_fastdp_capi"


class BuildError(RuntimeError):
    """The library cannot be built on this machine; the message names what is missing."""


@dataclass(frozen=True)
class Built:
    """The files that `build` wrote.

    Attributes
    ----------
    header : pathlib.Path
        fastdp.h.
    library : pathlib.Path
        libfastdp.so, or libfastdp.dylib on macOS.
    pkg_config : pathlib.Path
        fastdp.pc.
    """

    header: Path
    library: Path
    pkg_config: Path


def build(folder: str | os.PathLike[str]) -> Built:
    """Write fastdp.h, libfastdp.so and fastdp.pc for C programs.

    Parameters
    ----------
    folder : str or os.PathLike
        Where to write them; the folder is made if need be.

    Returns
    -------
    Built
        The paths of the three files.

    Raises
    ------
    BuildError
        A Python with a shared library, its headers or a C compiler is missing; the message names which.
    """
    libpython, include, compiler = _tools()
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    suffix = "dylib" if sys.platform == "darwin" else "so"
    built = Built(place / "fastdp.h", place / f"libfastdp.{suffix}", place / "fastdp.pc")
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch, "fastdp.c"), Path(scratch, built.library.name)
        Path(scratch, "fastdp.h").write_text(header(), encoding="utf-8")
        _write_source(source, libpython)
        command = [*compiler, "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-D_CFFI_NO_LIMITED_API"]
        command += [f"-I{include}", f"-I{scratch}", "-pthread", str(source), "-o", str(made), *_link_flags(libpython)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{shlex.join(compiler)} failed:\n{done.stderr.strip()}")
        partial = place / f".{built.library.name}.{os.getpid()}"
        shutil.copyfile(made, partial)
        partial.chmod(0o755)
        os.replace(partial, built.library)  # a process that has the old one open keeps it
    built.header.write_text(header(), encoding="utf-8")
    built.pkg_config.write_text(_pkg_config(place), encoding="utf-8")
    return built


def shared_python() -> Path:
    """Python's own code as a shared library; BuildError if this Python has none."""
    names = [sysconfig.get_config_var(name) or "" for name in ("INSTSONAME", "LDLIBRARY")]
    version = sysconfig.get_config_var("LDVERSION") or sysconfig.get_python_version()
    names += [f"libpython{version}.so.1.0", f"libpython{version}.so", f"libpython{version}.dylib"]
    folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
    folders.append(os.path.join(folders[0], sysconfig.get_config_var("MULTIARCH") or ""))
    for folder in folders:
        for name in names:
            path = Path(folder, name)
            if folder and (".so" in name or name.endswith(".dylib")) and path.is_file():
                return path
    raise BuildError(
        f"{sys.executable}: this Python has no shared library (libpython{version}): must be one that was built with "
        "--enable-shared, such as a distribution's, or uv's and pyenv's with PYTHON_CONFIGURE_OPTS=--enable-shared"
    )


def why_not() -> str | None:
    """The message of the BuildError that `build` would raise here, or None."""
    try:
        _tools()
    except BuildError as error:
        return str(error)
    return None


def _tools() -> tuple[Path, Path, list[str]]:
    """The shared library of this Python, the folder of its headers, the compiler."""
    if sys.platform == "win32":
        raise BuildError("the C library is for Linux and macOS: must not be Windows")
    libpython, include = shared_python(), Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        raise BuildError(f"{include}: has no Python.h: install the headers of this Python (python3-dev, python3-devel)")
    return libpython, include, find_compiler()


def find_compiler() -> list[str]:
    """The C compiler: $CC, or cc; BuildError if there is none."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(compiler[0]) is None:
        raise BuildError(f"{compiler[0]}: there is no such C compiler: install one, or name it in CC")
    return compiler


def _link_flags(libpython: Path) -> list[str]:
    flags = [str(libpython), f"-Wl,-rpath,{libpython.parent}"]
    if sys.platform == "darwin":
        return ["-dynamiclib", "-install_name", "@rpath/libfastdp.dylib", *flags]
    # nodelete: Python does not leave a process, so neither may what it calls
    return ["-shared", "-Wl,-soname,libfastdp.so", "-Wl,-z,nodelete", *flags, "-ldl"]


def _write_source(path: Path, libpython: Path) -> None:
    import cffi
    from cffi.recompiler import make_c_source

    ffi = cffi.FFI()
    ffi.embedding_api("")
    ffi.cdef(inner_cdef())
    start = Path(__file__).with_name("start.c").read_text(encoding="utf-8")
    names = f"#define FASTDP_EXECUTABLE {_quoted(sys.executable)}\n#define FASTDP_LIBPYTHON {_quoted(str(libpython))}\n"
    visible = '#define FASTDP_API __attribute__((visibility("default")))\n#include "fastdp.h"\n'
    home = os.path.realpath(Path(__file__).parents[2])
    ffi.embedding_init_code(_FIRST.format(module=MODULE, home=home, executable=sys.executable, digest=digest()))
    make_c_source(ffi, MODULE, f"{names}{visible}{start}\n{fronts()}", str(path))  # emit_c_code prints


def _quoted(text: str) -> str:
    """A C string: every byte that is not plainly itself as an octal number."""
    return (
        '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in os.fsencode(text)) + '"'
    )


# What runs first in Python. It must not raise: cffi would print. Only where the library itself started Python does it
# touch the path of modules, and only if what is found there is not the fastdp that wrote the library.
_FIRST = """
from {module} import ffi, lib
try:
    import os, sys
    if lib.fastdp_started_python():
        from importlib.util import find_spec
        found = find_spec("fastdp")
        if not found or os.path.realpath(os.path.dirname(os.path.dirname(found.origin))) != {home!r}:
            sys.path.insert(0, {home!r})
    from fastdp.capi.embedded import attach
    attach(ffi, lib, {digest!r})
except BaseException as error:
    text = "fastdp cannot be used in the environment of %s: %s: %s" % ({executable!r}, type(error).__name__, error)
    lib.fastdp_refuse(text.encode(errors="replace")[:1000])
"""


def _pkg_config(place: Path) -> str:
    escaped = re.sub(r"([\s\\#$'\"])", r"\\\1", str(place))
    return f"""prefix={escaped}

Name: fastdp
Description: differential privacy, exact and fast
Version: {__version__}
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -Wl,-rpath,${{prefix}} -lfastdp
"""
