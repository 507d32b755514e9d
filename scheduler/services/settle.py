"""Ends leases, whoever ends them: a report, a timeout, a cancellation or the reaper. Batched, idempotent, fenced.

A report whose lease is not current changes nothing and is named in the answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import transaction

from scheduler.policy.charges import began
from scheduler.policy.operations import DIED
from scheduler.policy.retry import Failure, RetryRule
from scheduler.policy.settlement import CANCEL_GRACE_S, EndedLease, Left, Verdict, decide_settlement
from scheduler.policy.states import TaskState
from scheduler.policy.types import FailureClass, LeaseId, Outcome
from scheduler.protocol.limits import TIMEOUT_GRACE_S
from scheduler.services.again import again
from scheduler.services.charging import Billed, charge_attempts
from scheduler.services.dead import bury
from scheduler.services.graphs import follow
from scheduler.services.lessons import learn
from scheduler.services.steps import charge
from scheduler.services.using import sum_of
from scheduler.store import charges as charge_store
from scheduler.store import dispatch as dispatch_store
from scheduler.store import settle as store

REAP_MAX: Final = 500
UNCLAIMED_AFTER_S: Final = 1.0
"""A lease whose worker has not come for it within this is handed back: the attempt was not made."""
BEHIND_S: Final = 5.0
"""The same for a remote worker whose web process lives and has much to do."""
_CHANCE: Final = random.SystemRandom()
_DEFAULT_RULE: Final = RetryRule()


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended. `result` and `usage` are JSON text.

    `actual` gives measured amounts by resource name, `left` what the provider said is left of those that run low;
    `quota` names the limits of the provider that answered, which a throttled answer closes (empty: every token bucket
    that the attempt drew on). `began` says whether the attempt was under way, where the outcome does not.
    """

    lease: LeaseId
    outcome: Outcome
    failure: Failure | None = None
    result: str | None = None
    usage: str | None = None
    actual: Mapping[str, float] = field(default_factory=dict)
    quota: tuple[str, ...] = ()
    began: bool | None = None
    left: Mapping[str, Left] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settled:
    """What the reports came to: task state by lease, and the leases that were not current.

    `woken`: how many other tasks may start now, or were told to stop, because of these.
    """

    states: Mapping[LeaseId, TaskState]
    stale: tuple[LeaseId, ...]
    woken: int = 0


@again
def settle(reports: Sequence[Report], *, expired_only: bool = False, unclaimed_only: bool = False) -> Settled:
    """Settle these reports in one transaction. Each lease may stand once.

    With `expired_only` leases that were renewed meanwhile stay, with `unclaimed_only` those that were picked up.

    1. end the leases and write their attempts;
    2. decide what follows for each task;
    3. correct the limits: measured amounts, and what the ends say of the providers behind them; then replace what the
       attempts had reserved of budgets by what they cost, and count what their runs used;
    4. move the tasks, keep the results, and correct the fairness counters by what the attempts took;
    5. for tasks that are tied to others: move on those that come after them, and end their groups;
    6. enter those that died among the dead letters.

    In this order: dispatch locks limits, then budgets, then counters and tasks.
    """
    by_lease = {report.lease: report for report in reports}
    with transaction.atomic(savepoint=False):
        ended = store.end_leases(
            [_ending(r) for r in by_lease.values()], expired_only=expired_only, unclaimed_only=unclaimed_only
        )
        verdicts = _decide(ended, by_lease)
        woken = 0
        if ended:
            usages, charged = _used(ended, by_lease)
            results = [
                by_lease[e.lease].result if v.state is TaskState.SUCCEEDED else None
                for e, v in zip(ended, verdicts, strict=True)
            ]
            learn([(e, by_lease[e.lease]) for e in ended])
            charge_attempts(
                [
                    _bill(e, by_lease[e.lease], v, charged.get(e.lease, ()))
                    for e, v in zip(ended, verdicts, strict=True)
                    if e.reserved is not None
                ]
            )
            charge([(e.demand, usages[e.lease]) for e in ended])
            tied = store.apply_settlements(ended, verdicts, results)
            woken = follow(tied) if tied else 0
            _bury(ended, verdicts, by_lease)
    states = {e.lease: v.state for e, v in zip(ended, verdicts, strict=True)}
    return Settled(states, tuple(lease for lease in by_lease if lease not in states), woken)


def reap() -> int:
    """End leases that nobody picked up or renewed, and timeouts and cancellations that nobody heeded; returns how many.

    One that was never picked up spends no attempt: its worker died, or is too busy to come.
    """
    unclaimed = [
        Report(lease, Outcome.RELEASED) for lease in store.load_unclaimed(UNCLAIMED_AFTER_S, BEHIND_S, REAP_MAX)
    ]
    handed_back = len(settle(unclaimed, unclaimed_only=True).states) if unclaimed else 0
    lost = Failure(FailureClass.LOST, "the worker stopped renewing its lease")
    expired = [Report(lease, Outcome.LOST, lost) for lease in store.load_expired(REAP_MAX)]
    count = handed_back + (len(settle(expired, expired_only=True).states) if expired else 0)
    late = store.load_overdue_timeouts(grace_s=TIMEOUT_GRACE_S, leases_max=REAP_MAX)
    over = Failure(FailureClass.TIMEOUT, "no result in time, and the worker did not stop")
    count += len(settle([Report(lease, Outcome.TIMED_OUT, over) for lease in late]).states) if late else 0
    silent = store.load_overdue_cancellations(grace_s=CANCEL_GRACE_S, leases_max=REAP_MAX)
    cancelled = [Report(lease, Outcome.CANCELLED) for lease in silent]
    return count + (len(settle(cancelled).states) if cancelled else 0)


def _ending(report: Report) -> store.Ending:
    failure = report.failure
    if failure is None:
        return store.Ending(report.lease, report.outcome, usage=report.usage)
    return store.Ending(
        report.lease,
        report.outcome,
        failure.failure_class.value,
        failure.message,
        failure.retry_after_s,
        report.usage,
    )


def _used(
    ended: Sequence[store.EndedRow], by_lease: Mapping[LeaseId, Report]
) -> tuple[dict[LeaseId, str | None], dict[LeaseId, list[str]]]:
    """What each attempt has used in all (JSON text), and what those that were charged while they ran were charged."""
    usages = {e.lease: by_lease[e.lease].usage for e in ended}
    if not any(e.charged for e in ended):
        return usages, {}
    charged = charge_store.take([e.lease for e in ended if e.charged])
    tasks = {e.lease: e.task for e in ended}
    for lease, calls in charged.items():
        reported = usages[lease]
        usages[lease] = sum_of([*calls, *([] if reported is None else [reported])])
    charge_store.write_usages({(tasks[lease], lease): usages[lease] or "{}" for lease in charged})
    return usages, charged


def _bill(ended: store.EndedRow, report: Report, verdict: Verdict, charged: Sequence[str]) -> Billed:
    return Billed(
        ended,
        report.outcome,
        began=began(report.outcome, report.began),
        usage=report.usage,
        succeeded=verdict.state is TaskState.SUCCEEDED,
        charged=tuple(charged),
    )


def _bury(ended: Sequence[store.EndedRow], verdicts: Sequence[Verdict], by_lease: Mapping[LeaseId, Report]) -> None:
    dead = {
        e.task: (e.tenant, e.pool, by_lease[e.lease].failure or Failure(FailureClass.ERROR, "no message"))
        for e, v in zip(ended, verdicts, strict=True)
        if v.state in DIED
    }
    if dead:
        bury(dead)


def _decide(ended: Sequence[store.EndedRow], by_lease: Mapping[LeaseId, Report]) -> list[Verdict]:
    failed = [e.task for e in ended if by_lease[e.lease].outcome is not Outcome.SUCCEEDED]
    rules = store.load_retry_rules(failed) if failed else {}
    now = dispatch_store.load_now() if failed else 0.0
    return [
        decide_settlement(
            EndedLease(e.task, e.attempt, e.cancel_requested),
            by_lease[e.lease].outcome,
            by_lease[e.lease].failure,
            rules.get(e.task, _DEFAULT_RULE),
            draw=_CHANCE.random() if e.task in rules else 0.0,
            now=now,
        )
        for e in ended
    ]
