"""Ends leases and moves their tasks on. The only statements that take a task out of `running`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from scheduler.policy.aimd import STEP_S
from scheduler.policy.fairness import WEIGHT_MIN
from scheduler.policy.graph import Links
from scheduler.policy.retry import RetryRule
from scheduler.policy.settlement import Verdict
from scheduler.policy.states import TaskState
from scheduler.policy.types import DemandId, LeaseId, Outcome, PoolId, ResourceId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.graphs import Ended

_SQL: Final = queries.load("settle.sql")

MESSAGE_CHARS_MAX: Final = 2_000


class Ending(NamedTuple):
    """How one lease ends, as it goes into history. `usage` is JSON text."""

    lease: LeaseId
    outcome: Outcome
    failure_class: str | None = None
    message: str | None = None
    retry_after_s: float | None = None
    usage: str | None = None


class EndedRow(NamedTuple):
    """A lease that was current and is no more. `reserved` None: it cost nothing.

    `watched` are the limits, of any, for which it matters how calls end. `billing` (JSON text) says how it is billed,
    if it cost something: its kind, its class, what a second of its pool's workers costs, and how it was priced.
    `charged`: calls were charged while it ran.
    """

    lease: LeaseId
    task: TaskId
    attempt: int
    pool: PoolId
    tenant: TenantId
    demand: DemandId
    amounts: list[float]
    cancel_requested: bool
    took_s: float
    reserved: int | None
    budgets: list[int] | None
    started_at: float
    watched: list[ResourceId] | None
    billing: str | None = None
    charged: bool = False


def end_leases(
    endings: Sequence[Ending], *, expired_only: bool = False, unclaimed_only: bool = False
) -> list[EndedRow]:
    """End leases and write attempts. A lease missing from the answer was not current any more."""
    params = {
        "leases": queries.array(e.lease for e in endings),
        "outcomes": queries.array(e.outcome.value for e in endings),
        "classes": queries.array(e.failure_class for e in endings),
        "messages": queries.text_array(_clean(e.message) for e in endings),
        "retry_afters_s": queries.array(e.retry_after_s for e in endings),
        "usages": queries.text_array(e.usage for e in endings),
        "expired_only": expired_only,
        "unclaimed_only": unclaimed_only,
        "paced_s": STEP_S,
    }
    rows = queries.fetch(_SQL["end_leases"], params)
    return [EndedRow(*row[:-1]) for row in rows]


def _clean(message: str | None) -> str | None:
    """A message as it can be stored: bounded, without NUL, and with half surrogates made visible."""
    if message is None:
        return None
    return message[:MESSAGE_CHARS_MAX].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def load_retry_rules(tasks: Sequence[TaskId]) -> dict[TaskId, RetryRule]:
    """The rule each task is retried by: its own where it brought one, else its pool's."""
    rules = {}
    for task, max_attempts, initial_s, multiplier, max_s, own in queries.fetch(
        _SQL["read_retry_rules"], {"tasks": list(tasks)}
    ):
        rule = {"initial_backoff_s": initial_s, "multiplier": multiplier, "max_backoff_s": max_s, "jitter": True}
        if own is not None:
            rule |= orjson.loads(own)
        rules[task] = RetryRule(
            max_attempts, rule["initial_backoff_s"], rule["multiplier"], rule["max_backoff_s"], rule["jitter"]
        )
    return rules


def apply_settlements(
    ended: Sequence[EndedRow], verdicts: Sequence[Verdict], results: Sequence[str | None]
) -> list[Ended]:
    """Move tasks out of `running`; returns those that have ended and are tied to others."""
    rows = queries.fetch(
        _SQL["apply_settlements"],
        {
            "tasks": queries.array(e.task for e in ended),
            "attempts": queries.array(e.attempt for e in ended),
            "states": queries.array(v.state.value for v in verdicts),
            "dues": queries.array(v.due_at for v in verdicts),
            "spent": queries.array(v.spent for v in verdicts),
            "results": queries.text_array(results),
            "took_s": queries.array(e.took_s for e in ended),
            "weight_min": WEIGHT_MIN,
        },
    )
    return [Ended(TaskId(task), TaskState(state), Links(links)) for task, state, links in rows]


def correct_levels(deltas: Mapping[ResourceId, float], lowest: Mapping[ResourceId, float]) -> None:
    """Add to (or take from) bucket levels what settlements found, then lower them to what providers say is left."""
    resources = sorted({*deltas, *lowest})
    params = {
        "resources": queries.array(resources),
        "deltas": queries.array(deltas.get(each, 0.0) for each in resources),
        "lowest": queries.array(lowest.get(each) for each in resources),
    }
    queries.run(_SQL["correct_levels"], params)


def block_resources(seconds: Mapping[ResourceId, float]) -> None:
    """Close limits for so many seconds from now."""
    queries.run(_SQL["block_resources"], {"resources": list(seconds), "seconds": list(seconds.values())})


def load_unclaimed(after_s: float, behind_s: float, leases_max: int) -> list[LeaseId]:
    """Leases that their worker did not pick up within `after_s`, or in `behind_s` if it is remote and lives."""
    params = {"after_s": after_s, "behind_s": behind_s, "leases_max": leases_max}
    rows = queries.fetch(_SQL["unclaimed_leases"], params)
    return [LeaseId(row[0]) for row in rows]


def load_expired(leases_max: int) -> list[LeaseId]:
    """Leases whose holder stopped renewing them."""
    return [LeaseId(row[0]) for row in queries.fetch(_SQL["expired_leases"], {"leases_max": leases_max})]


def load_overdue_timeouts(*, grace_s: float, leases_max: int) -> list[LeaseId]:
    """Leases of remote workers whose time was over longer than `grace_s` ago."""
    rows = queries.fetch(_SQL["overdue_timeouts"], {"grace_s": grace_s, "leases_max": leases_max})
    return [LeaseId(row[0]) for row in rows]


def load_overdue_cancellations(*, grace_s: float, leases_max: int) -> list[LeaseId]:
    """Leases that were told to stop longer than `grace_s` ago."""
    rows = queries.fetch(_SQL["overdue_cancellations"], {"grace_s": grace_s, "leases_max": leases_max})
    return [LeaseId(row[0]) for row in rows]
