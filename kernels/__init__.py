"""The compiled core: numba loops over arrays and scalars, imported as `fastdp.kernels`."""

if __name__ != "fastdp.kernels":
    raise ImportError(
        f"{__name__!r}: this package is fastdp's compiled core and must be imported as 'fastdp.kernels' "
        "(another name would poison the kernel cache); write `import fastdp.kernels`"
    )
