"""A report that nobody measured."""

from dataclasses import replace

from fastdp.bench.harness.results import Peak, Report, Row

MACHINE = {
    "versions": {"fastdp": "0.1.0", "numpy": "2.0.0"}, "system": "Linux", "cpu": "A <CPU> & more", "cores": 2,
    "compiled for": "znver5", "simd": "avx512", "threads": 1,
}  # fmt: skip
ROW = Row(
    case="laplace-int64-100-new", room="noise", work="laplace | int64 <scale 100>", parameters={"scale": 2.0**20},
    threads=1, n=1_000_000, ours=1.4e-3, rival="numpy", rival_n=1_000_000, rival_parameters={}, theirs=11.8e-3,
    ratio=8.43, kind="faster", limit=6.0, verdict="holds",
)  # fmt: skip
SLOW = replace(ROW, rival="OpenDP", rival_n=1000, rival_parameters={"scale": 200.0}, ratio=2.5, verdict="falls short")
GONE = replace(ROW, rival="a peer", theirs=None, ratio=None, kind=None, limit=None, verdict="crashed: <b>")
WITHIN = replace(ROW, case="import", work="import", n=1, kind="within", ratio=4.0, limit=0.5, verdict="holds")
POINTS = [
    {"x": 10**k, "n": 10**k, "ours": 1e8 * k, "numpy": 1e7 * k, "limit": 1e9, "threads": {"2": 1.9e8 * k}}
    for k in range(3, 6)
]
CURVE = {
    "name": "curve-x", "room": "noise", "title": "noise & more", "axis": "records", "unit": "a number",
    "numpy": "numpy", "threads": 1, "points": POINTS,
}  # fmt: skip
REPORT = Report(
    machine=MACHINE, quick=False, avx2=False, rows=(ROW, SLOW, GONE, WITHIN), measured=(), failed={"x": "it <crashed>"},
    curves=(CURVE,), latency=(WITHIN,),
    memory=(Peak("laplace", "laplace", 1000, 8000, 16_000, "numpy", 0), Peak("y", "y", 1, 8, None, None, None, "died")),
    commit="0123456789", date="2030-01-02 03:04 UTC",
)  # fmt: skip
