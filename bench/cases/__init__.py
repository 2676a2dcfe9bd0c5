"""The registry of benchmark cases: what is measured, beside whom, and with which target.

A new row is one `Case` (`registry.py`) in the module of its subject: a room is a module here, or a package with a
module for each subject, and its `CASES` are its rows. Where the size is what matters it is a `Curve` (`curves.py`);
calls that hardly have anything to do are in `latency.py`, what is measured by the bytes that it holds in `memory.py`.
"""
