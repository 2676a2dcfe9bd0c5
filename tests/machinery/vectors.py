"""Writes the test vectors of docs/vectors: `python -m tests.machinery.vectors`.

They pin what is drawn and charged, so they are made anew only where docs/test-vectors.md allows a change; then the
CHANGELOG says so. `tests/house/test_vectors.py` holds the library to them, and the small implementation beside them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fastdp
from fastdp.kernels import layout
from fastdp.kernels.words import words_into
from fastdp.mechanisms import buckets, noise
from fastdp.privacy import calibration, conversions, gaussian_curve
from fastdp.randomness import exact_draws, noise_draws, noise_plans
from fastdp.randomness.keys import word_source

FOLDER = Path(__file__).parents[2] / "docs" / "vectors"
Vector = dict[str, Any]


def seeded(seed: int) -> fastdp.Randomness:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


ENDS: dict[str, list[int]] = {"chacha20": [], "aes-256-ctr": [layout.AES_MARK]}  # what follows the 256 bits of a key


def key_of(vector: Vector) -> Any:
    """The key of a vector, as kernels take it."""
    bits = np.frombuffer(bytes.fromhex(vector["key"]), np.uint32)
    return np.append(bits, np.array(ENDS[vector["cipher"]], np.uint32))


class Given(fastdp.Randomness):
    """Every release has the key of this vector."""

    def __init__(self, vector: Vector) -> None:
        super().__init__()
        self.vector = vector

    def key(self) -> Any:
        return key_of(self.vector)


def scores_of(vector: Vector) -> Any:
    whole = all(isinstance(score, int) for score in vector["scores"])
    return np.array([s if isinstance(s, int) else float.fromhex(s) for s in vector["scores"]], None if whole else float)


# --- what the library answers


def words(vector: Vector) -> Vector:
    out = np.empty(len(vector["words"]), np.uint64)
    words_into(key_of(vector), vector["stream"], vector["first"], out)
    return {"words": [f"{word:016x}" for word in out.tolist()]}


def keys(vector: Vector) -> Vector:
    rng = seeded(vector["seed"])
    made = [rng.key() for _ in range(vector["release"] + 1)]
    return {"key": made[-1].tobytes().hex()}


def draws(vector: Vector) -> Vector:
    scale, first, n = float.fromhex(vector["scale"]), vector["first"], len(vector["draws"])
    if vector["law"] == "geometric":
        source = word_source(key_of(vector))
        found = [exact_draws.geometric_draw(source, first + i, scale, two_sided=False) for i in range(n)]
        return {"draws": found}
    plan = noise_plans.laplace_plan(scale) if vector["law"] == "laplace" else noise_plans.gaussian_plan(scale)
    return {"draws": noise_draws.integer_noise_from(plan, key_of(vector), first, n).tolist()}


def choices(vector: Vector) -> Vector:
    scores, k = scores_of(vector), len(vector["chosen"])
    rng = seeded(vector["seed"]) if "seed" in vector else Given(vector)
    epsilon = 2 * float.fromhex(vector["eta"])
    if vector["method"] == "permute-and-flip":
        return {"chosen": [int(fastdp.permute_and_flip(scores, sensitivity=1, epsilon=epsilon, rng=rng))]}
    if vector["method"] == "gumbel":
        return {"chosen": fastdp.top_k(scores, k, sensitivity=1, epsilon=k * epsilon, rng=rng).tolist()}
    options = {"sensitivity": 1, "epsilon": k * epsilon, "size": k, "method": "buckets"}
    chosen = fastdp.exponential_mechanism(scores, rng=rng, **options)  # type: ignore[arg-type]
    return {"chosen": chosen.tolist(), "factor": buckets._factor(float.fromhex(vector["eta"])).hex()}


def sigmas(vector: Vector) -> Vector:
    given = {k: float.fromhex(v) for k, v in vector.items() if k not in ("kind", "dimension") and v}
    sensitivity = given["sensitivity"]
    if vector["kind"] == "laplace":
        return {"scale": noise._laplace_for_integers(sensitivity, given["epsilon"]).scale.hex()}
    if vector["kind"] == "zcdp":
        return {"sigma": calibration.zcdp_sigma(sensitivity, rho=given["rho"]).hex()}
    options = {"epsilon": given["epsilon"], "delta": given["delta"]}
    return {"sigma": calibration.gaussian_sigma(sensitivity, dimension=vector["dimension"], **options).hex()}


def prices(vector: Vector) -> Vector:
    given = {k: float.fromhex(v) for k, v in vector.items() if k != "kind" and v}
    if vector["kind"] == "rho of epsilon":
        return {"rho": conversions.rho_of_pure(given["epsilon"]).hex()}
    if vector["kind"] == "rho of range":
        return {"rho": conversions.rho_of_range(given["eta"]).hex()}
    if vector["kind"] == "epsilon of mu":
        return {"found": gaussian_curve.epsilon_of_mu(given["mu"], given["delta"]).hex()}
    return {"found": conversions.epsilon_of_rho(given["rho"], given["delta"]).hex()}


ANSWERS: dict[str, Callable[[Vector], Vector]] = {
    "keys": keys, "words": words, "draws": draws, "choices": choices, "sigmas": sigmas, "prices": prices,
}  # fmt: skip


# --- what is asked


def _key(seed: int) -> str:
    return seeded(seed).key().tobytes().hex()


def _keys() -> Iterator[Vector]:
    for seed, release in ((0, 0), (0, 1), (1, 0), (-5, 3), (2**64, 0)):
        yield {"seed": seed, "release": release, "key": ""}


def _words() -> Iterator[Vector]:
    rfc = bytes(range(32)).hex()
    places = (
        (0, 0, 20),
        (0, 120, 20),
        (1, 0, 8),
        (2**32 + 7, 2**40 + 5, 8),
        (0x4A000000, 0x0090_0000_0000_0000 * 128, 16),
    )
    for cipher in ENDS:
        for key in (rfc, "00" * 32, _key(0)):
            for stream, first, n in places:
                yield {"cipher": cipher, "key": key, "stream": stream, "first": first, "words": [""] * n}


def _draws() -> Iterator[Vector]:
    scales = (2.0**-20, 0.5, 1.0, 3.0, 1000.125, 2.0**15, 2.0**15 + 1, 2.0**31, 2.0**33, 2.0**40)
    for seed, scale in enumerate(scales):
        for law, first, n in (("laplace", 0, 12), ("laplace", 3 * layout.LAPLACE_BLOCK, 6), ("geometric", 0, 8),
                              ("gaussian", 0, 8), ("gaussian", 2 * layout.GAUSSIAN_BLOCK, 4)):  # fmt: skip
            vector = {"law": law, "scale": scale.hex(), "cipher": "chacha20", "key": _key(seed), "first": first}
            yield vector | {"draws": [0] * n}
    for scale in (3.0, 2.0**31, 2.0**33):  # of one, two and three words a draw
        for law, first in (("laplace", layout.LAPLACE_BLOCK), ("geometric", 0), ("gaussian", layout.GAUSSIAN_BLOCK)):
            vector = {"law": law, "scale": scale.hex(), "cipher": "aes-256-ctr", "key": _key(50), "first": first}
            yield vector | {"draws": [0] * 6}


def _choices() -> Iterator[Vector]:
    wide: list[Any] = [((i * 37) % 101) * 3 for i in range(60)]
    floats = [(i * 0.3125 - 7.0).hex() for i in range(20)]
    forbidden = ["-inf", (1.0).hex(), "-inf", (1e300).hex(), (-1e300).hex(), (1e300).hex()]
    blocks = [(i * 7919) % 50 for i in range(4100)]
    lists = (([1, 0], 1), ([5] * 9, 3), (wide, 4), (floats, 2), (forbidden, 2), ([2**63 - 1, -(2**63), 2**63 - 2], 1))
    for seed, (scores, k) in enumerate(lists):
        for eta in (0.125, 1.0, 30.0):
            common = {
                "cipher": "chacha20",
                "seed": 100 + seed,
                "key": _key(100 + seed),
                "eta": eta.hex(),
                "scores": scores,
            }
            yield {"method": "gumbel", **common, "chosen": [0] * k}
            yield {"method": "permute-and-flip", **common, "chosen": [0]}
            yield {"method": "buckets", **common, "chosen": [0] * 4}
    common = {"cipher": "aes-256-ctr", "key": _key(150), "eta": (0.125).hex(), "scores": wide}
    yield {"method": "gumbel", **common, "chosen": [0] * 4}
    yield {"method": "permute-and-flip", **common, "chosen": [0]}
    yield {"method": "buckets", **common, "chosen": [0] * 4}
    common = {"cipher": "chacha20", "seed": 200, "key": _key(200), "eta": (0.25).hex(), "scores": blocks}
    yield {"method": "buckets", **common, "chosen": [0] * 6}


def _sigmas() -> Iterator[Vector]:
    for sensitivity, epsilon in ((1.0, 1.0), (2.0, 0.1), (3.0, 0.7), (1024.0, 1e-3), (1.0, 8.0)):
        yield {"kind": "laplace", "sensitivity": sensitivity.hex(), "epsilon": epsilon.hex(), "scale": ""}
        yield {"kind": "zcdp", "sensitivity": sensitivity.hex(), "rho": epsilon.hex(), "sigma": ""}
    for sensitivity, epsilon, delta in ((1e4, 1.0, 1e-6), (2e4, 0.1, 1e-9), (5e5, 4.0, 1e-5), (1e4, 0.5, 1e-3)):
        vector = {"kind": "gaussian", "sensitivity": sensitivity.hex(), "epsilon": epsilon.hex(), "delta": delta.hex()}
        yield vector | {"dimension": 1, "within": (1e-5).hex(), "sigma": ""}


def _prices() -> Iterator[Vector]:
    for x in (1e-3, 0.1, 0.5, 1.0, 3.0, 20.0):
        yield {"kind": "rho of epsilon", "epsilon": x.hex(), "rho": ""}
        yield {"kind": "rho of range", "eta": x.hex(), "rho": ""}
    for x, delta in ((0.01, 1e-6), (0.1, 1e-6), (0.5, 1e-9), (2.0, 1e-5), (1.0, 1e-3)):
        common = {"delta": delta.hex(), "within": (1e-9).hex(), "found": ""}
        yield {"kind": "epsilon of rho", "rho": x.hex(), **common}
        yield {"kind": "epsilon of mu", "mu": x.hex(), **common}


QUESTIONS = {"keys": _keys, "words": _words, "draws": _draws, "choices": _choices, "sigmas": _sigmas, "prices": _prices}


def write(folder: Path = FOLDER) -> None:
    for name, questions in QUESTIONS.items():
        vectors = [vector | ANSWERS[name](vector) for vector in questions()]
        lines = ",\n  ".join(json.dumps(vector) for vector in vectors)
        text = f'{{\n "of": "{name}",\n "version": 1,\n "vectors": [\n  {lines}\n ]\n}}\n'
        (folder / f"{name}-vectors.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
