"""A question that takes too long to answer is answered with what to do instead."""

from __future__ import annotations

import psycopg
import pytest

from scheduler.errors import Refused
from scheduler.policy.operations import OperationKind
from scheduler.reads import operations
from scheduler.reads.operations import preview_operation
from scheduler.reads.task_lists import read_filter
from tests.conftest import LiveDatabase


def test_a_count_gives_up_in_time(live_database: LiveDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "COUNT_WITHIN_S", 0.2)
    asked = read_filter("kind:nobody")
    with psycopg.connect(live_database.url) as other:
        other.execute("LOCK TABLE task")
        with pytest.raises(Refused) as refused:
            preview_operation(OperationKind.CANCEL, asked, None)
    assert refused.value.code == "too_wide"
    assert "0.2 s" in refused.value.detail
    assert preview_operation(OperationKind.CANCEL, asked, None).count == 0
