"""A progress bar: what it shows, and that it leaves the process as it was."""

import threading

from fastdp.support import progress


def test_a_bar_starts_no_thread_and_shows_its_last_picture(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    before = threading.enumerate()
    with progress.reporting(True, "choosing") as report:
        for done in range(4):
            report(done, 3, "a step")
            assert threading.enumerate() == before
    shown = capsys.readouterr()
    assert not shown.out
    assert "choosing" in shown.err
    assert "3/3" in shown.err
