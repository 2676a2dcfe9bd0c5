"""What pyproject.toml cannot say: README.md as a package index shows it.

Its links lead to files of the repository. On an index they are those files at the address that pyproject.toml gives as
`Repository` under [project.urls]; as long as there is none, they are plain text, so that no link leads nowhere.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)]*)\)")


def readme(text: str, base: str) -> str:
    """The text with links relative to `base`, or without them."""
    return RELATIVE.sub(rf"[\1]({base.rstrip('/')}/blob/main/\2)" if base else r"\1", text)


if __name__ in ("__main__", "builtins"):  # run by a build, not imported by a test
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    setup(
        long_description=readme((ROOT / "README.md").read_text(encoding="utf-8"), urls.get("Repository", "")),
        long_description_content_type="text/markdown",
    )
