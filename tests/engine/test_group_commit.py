"""Submissions that come at the same time: fewer transactions, one answer each, no fault shared."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from django.db import connection, transaction

from scheduler.engine.group_commit import GroupCommit
from scheduler.errors import Refused
from scheduler.models import Task
from scheduler.policy.admission import Submission
from scheduler.services.submit import Accepted
from tests.conftest import LiveDatabase
from tests.support.work import make_pool, make_tenant


@pytest.fixture
def group() -> Iterator[GroupCommit]:
    with closing(GroupCommit()) as group:
        yield group


BLOCK = "LOCK TABLE task IN EXCLUSIVE MODE"


def test_those_who_come_while_one_is_stored_are_stored_together(
    live_database: LiveDatabase, group: GroupCommit
) -> None:
    tenant = make_tenant()
    make_pool()
    with psycopg.connect(live_database.url) as other:
        # The first submission waits for the table, so that the others must come meanwhile.
        other.execute(BLOCK)
        answers = [group.join(tenant, Submission(payload=str(n), pool="p")) for n in range(50)]
        other.rollback()
    ids = [answer.result(timeout=20).id for answer in answers]
    assert len(set(ids)) == 50
    assert Task.objects.count() == 50
    # Tasks of one transaction carry one time.
    assert Task.objects.values("created_at").distinct().count() <= 3


def test_a_refusal_reaches_its_own_submission_only(live_database: LiveDatabase, group: GroupCommit) -> None:
    tenant = make_tenant()
    make_pool()

    def send(n: int) -> Accepted | Refused:
        try:
            return group.submit(tenant, Submission(payload="1", pool="p" if n % 3 else "nope"))
        except Refused as refused:
            return refused

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(60)))
    assert [isinstance(answer, Refused) for answer in answers] == [n % 3 == 0 for n in range(60)]
    assert Task.objects.count() == 40
    assert live_database.name


def test_a_submission_that_the_database_refuses_fails_alone(live_database: LiveDatabase, group: GroupCommit) -> None:
    tenant = make_tenant()
    make_pool()
    with psycopg.connect(live_database.url) as other:
        other.execute(BLOCK)
        first = group.join(tenant, Submission(payload="0", pool="p"))
        # Not JSON: no edge lets it through, so only PostgreSQL stands in its way.
        bad = group.join(tenant, Submission(payload="{", pool="p"))
        good = group.join(tenant, Submission(payload="1", pool="p"))
        other.rollback()
    assert first.result(timeout=20).id != good.result(timeout=20).id
    with pytest.raises(Exception, match="json"):
        bad.result(timeout=20)
    assert Task.objects.count() == 2


def test_after_the_server_dropped_its_connection_the_next_one_is_stored(
    live_database: LiveDatabase, group: GroupCommit
) -> None:
    tenant = make_tenant()
    make_pool()
    group.submit(tenant, Submission(payload="1", pool="p"))
    group._stored_at = 0.0  # as if it had been idle
    with psycopg.connect(live_database.url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid NOT IN (pg_backend_pid(), %s)",
            (connection.connection.info.backend_pid,),
        )
    assert group.submit(tenant, Submission(payload="2", pool="p")).id


@pytest.mark.django_db
def test_inside_a_transaction_of_the_callers_it_commits_with_the_rest(group: GroupCommit) -> None:
    tenant = make_tenant()
    make_pool()
    with transaction.atomic():
        group.submit(tenant, Submission(payload="1", pool="p"))
        assert Task.objects.count() == 1
        transaction.set_rollback(True)
    assert Task.objects.count() == 0
