"""Types for users: `mypy --strict` accepts a small service, refuses a wrong one, and the service runs."""

from pathlib import Path

import pytest

from tests.house import service

SERVICE = Path(service.__file__)
WRONG = """
import numpy as np
import fastdp
fastdp.laplace(np.arange(3), sensitivity=1)
fastdp.laplace(np.arange(3), sensitivity=1, epsilon="1")
fastdp.gaussian(np.arange(3), sensitivity=1, rho=1, neighbours="replace-one")
fastdp.laplace([1], sensitivity=1, epsilon=1, neighbors="friends")
"""


def check(path: Path) -> tuple[str, str, int]:
    api = pytest.importorskip("mypy.api")
    return api.run(["--strict", "--config-file", "pyproject.toml", str(path)])


def test_the_service_is_accepted():
    found, errors, code = check(SERVICE)
    assert (code, errors) == (0, ""), found


def test_what_is_wrong_is_refused(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    found, _, code = check(path)
    assert code == 1
    wrong = {line.split(":")[1] for line in found.splitlines() if ": error: " in line}
    assert wrong == {"4", "5", "6", "7"}, found


def test_the_service_runs():
    service.main()
