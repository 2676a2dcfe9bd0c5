"""What upper layers bring to lower ones, by name: fastdp/support/extensions.py."""

from __future__ import annotations

import pytest

from fastdp.support import extensions


def test_a_module_is_imported_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_registered", {})
    extensions.register("point", "one", "json.decoder")
    extensions.register("point", "two", "nowhere.at.all")
    assert extensions.names("point") == ("one", "two")
    assert extensions.names("elsewhere") == ()
    assert extensions.load("point", "one").JSONDecoder
    with pytest.raises(ModuleNotFoundError):
        extensions.load("point", "two")


def test_nobody_takes_a_name_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_registered", {})
    extensions.register("engine", "numpy", "fastdp.records.arrays")
    extensions.register("engine", "numpy", "fastdp.records.arrays")
    with pytest.raises(ValueError, match=r"^name='numpy': must be free at 'engine', where fastdp\.records\.arrays"):
        extensions.register("engine", "numpy", "mine")
    extensions.register("dp_event", "numpy", "mine")
