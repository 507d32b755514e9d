"""What shares a server or a browser goes to one test process: marks `xdist_group`, said so that pytest-xdist hears."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from _pytest.nodeid import NodeId  # what an item's own id is made of, since pytest 9.2


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session: pytest.Session) -> Generator[None]:
    """Name the group behind the `@` of each id while a test process announces what it has collected.

    That is where `--dist loadgroup` reads it. pytest-xdist writes it there itself, but into an attribute that pytest
    no longer reads since 9.2 (pytest-dev/pytest-xdist#1386): nothing fails, every test goes to whichever process is
    free, and each of them starts what a group shares. Afterwards ids are their own again: reports and `--last-failed`
    know tests by them.
    """
    named = session.items if getattr(session.config.option, "loadgroup", False) else []
    before = [item._id for item in named]
    for item in named:
        if groups := sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")}):
            item._id = NodeId.parse(f"{item.nodeid}@{'_'.join(groups)}")
    try:
        yield
    finally:
        for item, own in zip(named, before, strict=True):
            item._id = own
