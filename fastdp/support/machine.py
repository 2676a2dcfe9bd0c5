"""What this machine is to the compiled core: versions, the CPU, the SIMD width that kernels are compiled for.

It owes `fastdp info` and the benchmark tables one description, the same in both. It never changes what it reads.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from .rounding import sixty_digits

SimdLevel = Literal["avx512", "avx2", "sse2", "neon", "unknown"]

SIMD_NAMES: dict[SimdLevel, str] = {
    "avx512": "AVX-512, 512 bits",
    "avx2": "AVX2, 256 bits",
    "sse2": "SSE2, 128 bits",
    "neon": "NEON, 128 bits",
    "unknown": "unknown",
}

# What a CPU name stands for by itself: asked where NUMBA_CPU_FEATURES says nothing of vectors, as in
# NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES="+aes". Otherwise the list of features decides, whatever the name.
_BY_CPU_NAME: dict[str, SimdLevel] = {
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "cascadelake", "cooperlake", "icelake-client"), "avx512"),
    **dict.fromkeys(("icelake-server", "tigerlake", "sapphirerapids", "graniterapids", "znver4", "znver5"), "avx512"),
    **dict.fromkeys(
        ("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3"), "avx2"
    ),
    **dict.fromkeys(("generic", "x86-64", "x86-64-v2", "nehalem", "westmere", "sandybridge", "ivybridge"), "sse2"),
}


def simd_level(triple: str, cpu: str, features: str) -> SimdLevel:
    """The widest SIMD registers that LLVM may use for this target (triple, CPU name, "+feature,-feature" list)."""
    if triple.startswith(("aarch64", "arm64")):
        return "neon"
    if not triple.startswith("x86_64"):
        return "unknown"
    given = set(features.split(","))
    if not any(feature[1:] in ("avx512f", "avx2", "sse2") for feature in given):
        return _BY_CPU_NAME.get(cpu, "unknown")
    return "avx512" if "+avx512f" in given else "avx2" if "+avx2" in given else "sse2"


def target() -> tuple[str, str, str]:
    """(triple, CPU name, features) that numba compiles for in this process; NUMBA_CPU_NAME and _FEATURES included."""
    from numba.core.registry import cpu_target

    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, cpu, features


def cpu_model() -> str:
    """The processor's name as its maker writes it."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def memory_limit(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """How many bytes of memory this process may use: all that the machine has, or what a control group leaves it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):  # version 2 and version 1
                root = groups / controllers
                file = "memory.limit_in_bytes" if controllers else "memory.max"
                folder = root / path.lstrip("/")
                for place in (folder, *folder.parents):  # every group above has a limit of its own
                    with suppress(OSError, ValueError):  # no such file, or "max"
                        limits.append(int((place / file).read_text()))
                    if place == root:
                        break
    return min(limits)


def usable_memory() -> int:
    """Half of the memory that there is for this process, in bytes."""
    return memory_limit() // 2


@sixty_digits
def display_bytes(size: int) -> str:
    """A number of bytes as people read it."""
    unit, power = ("GiB", 30) if size >= 2**30 else ("MiB", 20) if size >= 2**20 else ("KiB", 10)
    return f"{Decimal(size) / 2**power:.3g} {unit}"


def installation() -> dict[str, Any]:
    """Versions and the CPU: what can be said where nothing can be compiled, too."""
    return {
        "versions": {
            "fastdp": _version("fastdp"),
            "Python": platform.python_version(),
            **{name: _version(name) for name in ("numpy", "numba", "llvmlite", "cffi")},
        },
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": cores(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def describe() -> dict[str, Any]:
    """Versions, CPU and SIMD width, as plain values for a table or a JSON file."""
    triple, cpu, features = target()
    return {**installation(), "compiled for": cpu, "simd": simd_level(triple, cpu, features)}
