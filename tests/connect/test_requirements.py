"""What adapters say when a library is missing or too old."""

import importlib
import sys

import pytest

from fastdp.connect import requirements
from fastdp.connect.requirements import need


def test_a_missing_library_names_the_extra():
    with pytest.raises(ImportError, match=r'fastdp\.connect\.mbi needs nowhere, .*pip install "fastdp\[mbi\]"'):
        need("nowhere", extra="mbi", least="2")


def test_what_the_library_itself_misses_is_told_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import nowhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere'"):
        need("broken_library", extra="mbi", least="2")


@pytest.mark.parametrize(("found", "least", "enough"), [
    ("2.0.0", "2.0", True), ("2", "2.0", True), ("10.1", "9.9", True), ("2.0.0rc1", "2.0", True),
    ("3.1.dev0", "3.1", True),     ("1.9", "2.0", False), ("2.0.9", "2.0.10", False), ("1", "1.0.1", False),
])  # fmt: skip
def test_versions(monkeypatch, found, least, enough):
    monkeypatch.setattr(requirements, "version", lambda package: found)
    if enough:
        assert need("math", extra="mbi", least=least) is importlib.import_module("math")
    else:
        with pytest.raises(ImportError, match=rf"needs maths {least} or newer, found {found}: pip install"):
            need("math", extra="mbi", least=least, package="maths")


def test_an_adapter_whose_library_is_missing_says_so_when_it_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "snsynth", None)
    monkeypatch.delitem(sys.modules, "fastdp.connect.smartnoise", raising=False)
    with pytest.raises(ImportError, match=r'smartnoise-synth, .*pip install "fastdp\[smartnoise\]"'):
        importlib.import_module("fastdp.connect.smartnoise")


def test_an_adapter_imports_its_library_only_where_it_needs_it(run_python):
    code = (
        "import sys, fastdp.connect.mbi as m; m.Prng().normal(0, 1.0, 3); assert not {'mbi', 'jax'} & set(sys.modules)"
    )
    assert run_python(code) == ""


def test_a_missing_mbi_is_told_where_it_is_needed(monkeypatch):
    from fastdp import Domain
    from fastdp.connect import mbi

    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(ImportError, match=r'pip install "fastdp\[mbi\]"'):
        mbi.to_domain(Domain(a=2))
