"""fastdp for C programs: `python -m fastdp.capi DIR` writes a header, a library and a pkg-config file.

The library is a small front of an installed fastdp: at the first call it starts the Python of the environment that
wrote it, or joins the one that its host runs. `table.py` lists the functions; header, library and dispatch are
made from that list (`text.py`, `library.py`, `embedded.py`), so they cannot differ.
"""

from ..support.public_paths import publish
from .library import BuildError, Built, build

__all__ = ["BuildError", "Built", "build"]

publish(globals(), __all__, __name__)
