"""dp-accounting: what many releases come to, in Renyi terms and by privacy loss distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .inputs import noise_scales

PACKAGES = ("dp-accounting",)


def compose(n: int, *, delta: float) -> Callable[[], Any]:
    import dp_accounting as dp
    from dp_accounting import rdp

    kinds = {"laplace": dp.LaplaceDpEvent, "gaussian": dp.GaussianDpEvent}
    scales = noise_scales(n)

    def call() -> Any:
        accountant = rdp.RdpAccountant()
        for kind, scale in scales:
            accountant.compose(kinds[kind](scale))
        return accountant.get_epsilon(delta)

    return call


def compose_losses(n: int, *, delta: float) -> Callable[[], Any]:
    import dp_accounting as dp
    from dp_accounting import pld

    kinds = {"laplace": dp.LaplaceDpEvent, "gaussian": dp.GaussianDpEvent}
    scales = noise_scales(n)

    def call() -> Any:
        accountant = pld.PLDAccountant()
        for kind, scale in scales:
            accountant.compose(kinds[kind](scale))
        return accountant.get_epsilon(delta)

    return call


def compose_equal(n: int, *, scale: float, delta: float) -> Callable[[], Any]:
    import dp_accounting as dp
    from dp_accounting import pld

    return lambda: pld.PLDAccountant().compose(dp.LaplaceDpEvent(scale), n).get_epsilon(delta)


TASKS = {"compose": compose, "compose_losses": compose_losses, "compose_equal": compose_equal}
