"""The compiled core: numba loops over arrays and scalars, imported as `fastdp.kernels`.

Public, for compiled functions of your own as for fastdp itself: docs/kernels.md lists every kernel with its contract,
made by `python -m fastdp.kernels` from the docstrings here. Kernels check nothing: the contract is the caller's part.
"""

if __name__ != "fastdp.kernels":
    raise ImportError(
        f"{__name__!r}: this package is fastdp's compiled core and must be imported as 'fastdp.kernels' "
        "(another name would poison the kernel cache); write `import fastdp.kernels`"
    )

from .requirements import check as _check

_check()
