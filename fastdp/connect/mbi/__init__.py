"""mbi (private-pgm 2): synthetic distributions as its models, records both ways, exact draws for its mechanisms.

Nothing here imports jax or mbi before it needs them.
"""

from ...support.public_paths import publish
from .domains import from_dataset, from_domain, to_dataset, to_domain
from .model import Model
from .noise import Noise, Prng
from .selection import ExactSelection

__all__ = [
    "ExactSelection",
    "Model",
    "Noise",
    "Prng",
    "from_dataset",
    "from_domain",
    "to_dataset",
    "to_domain",
]

publish(globals(), __all__, __name__)
