"""What `Case.oracle` names: checks of what one call of ours produced, by room. They share no code with fastdp."""

from typing import Any

from tests.bench.oracles import accounting, answering, learning, noise, optimizing, selection

ORACLES: dict[str, Any] = {
    **noise.ORACLES,
    **accounting.ORACLES,
    **selection.ORACLES,
    **answering.ORACLES,
    **optimizing.ORACLES,
    **learning.ORACLES,
}
