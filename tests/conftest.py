"""Fixtures every folder may use: the test database, and committed data seen by several processes."""

import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from scheduler import conf
from scheduler.store.submit import forget_demands
from tests.support import database
from tests.support.groups import pytest_collection_finish

__all__ = ["pytest_collection_finish"]

# How fast an example ran says more about the machine than about the code.
settings.register_profile("suite", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@dataclass(frozen=True, slots=True)
class LiveDatabase:
    """A database whose rows are really committed. ``url`` is what other processes get as DATABASE_URL."""

    name: str
    url: str


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Give this test process a database of its own; replaces pytest-django's fixture of the same name."""
    worker = getattr(request.config, "workerinput", {"workerid": "main"})["workerid"]
    with django_db_blocker.unblock(), database.test_database(worker) as name:
        yield name


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """What this process remembers of rows must not outlive them: however a test's tables are emptied."""
    yield
    forget_demands()


@pytest.fixture
def live_database(django_db_setup: str, django_db_blocker: DjangoDbBlocker) -> Iterator[LiveDatabase]:
    """Let a test commit, and share what it commits with other threads and processes; tables are emptied afterwards."""
    with django_db_blocker.unblock():
        try:
            yield LiveDatabase(django_db_setup, database.url_of(django_db_setup))
        finally:
            database.empty_tables(django_db_setup)


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., conf.Config]:
    """Change values of this process's configuration for one test: ``configure(payload_bytes_max=100)``."""

    def change(**values: Any) -> conf.Config:
        config = replace(conf.current(), **values)
        monkeypatch.setattr(conf, "current", lambda: config)
        return config

    return change


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give what shares a server or a browser to one test process, so that it is started once. The rest goes anywhere.

    A folder's conftest may have said more closely what belongs together; nothing is said twice. What takes long comes
    first, so that no test process is busy with it when the others have nothing left.
    """
    for item in items:
        of_module = [f for f in getattr(item, "fixturenames", ()) if f in {"site", "data_dir"}]
        if of_module and item.get_closest_marker("xdist_group") is None and "acceptance" not in item.keywords:
            item.add_marker(pytest.mark.xdist_group(item.path.as_posix()))
    items.sort(key=_rank)
    if heavy := {"anthropic", "openai"} & sys.modules.keys():
        # Every test process pays for what collecting imports before its first test.
        raise pytest.UsageError(f"Collecting imported {', '.join(sorted(heavy))}: see tests/support/lazily.py.")


def _rank(item: pytest.Item) -> int:
    """0 for what shares a browser, the longest of all groups; 1 for other groups and for what is slow alone."""
    marks = {mark.name for mark in item.iter_markers()}
    return 0 if "browser" in marks else 1 if marks & {"slow", "xdist_group"} else 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Spell out what a test logged that is not Unicode: reports travel between test processes as UTF-8."""
    report = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode("utf-8")) for title, text in report.sections
    ]
    return report
