"""One simulator for each test process; every test finds it fresh."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.provider import RunningProvider, running_provider


@pytest.fixture(scope="session")
def shared_provider() -> Iterator[RunningProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: RunningProvider) -> RunningProvider:
    shared_provider.reset()
    return shared_provider
