"""Throughput, measured: one registry of cases that the tests and the benchmarks share, imported as `fastdp.bench`."""

if __name__ != "fastdp.bench":
    raise ImportError(
        f"{__name__!r}: this package is fastdp's benchmark suite and must be imported as 'fastdp.bench' "
        "(another name would hold a second copy of every case); write `import fastdp.bench`"
    )
