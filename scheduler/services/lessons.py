"""What ended attempts teach about the limits that they drew on. Part of settlement, in its transaction.

That is: measured amounts, what a provider says is left, its wish to be left alone, its pace, whether it is down,
whether it wants money.

While all is well nothing is written and no statement sent: successes are looked at only for limits of late trouble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from scheduler.policy.aimd import after_refusal, after_success
from scheduler.policy.alerts import Alert
from scheduler.policy.breaker import Call, after_calls, verdict_of
from scheduler.policy.limits import effective_rate
from scheduler.policy.settlement import Left, corrections, lowered, throttled_for_s
from scheduler.policy.types import FailureClass, Outcome, ResourceId, ResourceKind, ResourceView
from scheduler.services.changes import Author, record
from scheduler.services.events import announce
from scheduler.store import dispatch as dispatch_store
from scheduler.store import lessons as store
from scheduler.store import resources as resource_store
from scheduler.store import settle as settle_store

if TYPE_CHECKING:
    from scheduler.services.settle import Report

    End = tuple[settle_store.EndedRow, Report]
    DrawnEnd = tuple[settle_store.EndedRow, Report, Sequence[ResourceId]]

BILLING_REASON: Final = "The provider says that the account is out of money: "
SYSTEM: Final = "system"


def learn(ends: Sequence[End]) -> None:
    """Correct the limits by what these attempts came to. Locks limits in id order, before tasks."""
    watched = set(ends[0][0].watched or ())
    if not watched and not any(r.actual or r.left or _is_telling(r) for _, r in ends):
        return
    demands = dispatch_store.load_demands(sorted({e.demand for e, _ in ends}))
    drawn = [(e, r, demands[e.demand].resources) for e, r in ends]
    telling = [
        end for end in drawn if end[1].actual or end[1].left or _is_telling(end[1]) or not watched.isdisjoint(end[2])
    ]
    if telling:
        _Lesson(telling, watched).apply()


def _is_telling(report: Report) -> bool:
    """Whether it says something of its provider that is to be acted on, trouble or not."""
    failure = report.failure
    if verdict_of(report.outcome, failure) is False:
        return True
    acted_on = (FailureClass.THROTTLED, FailureClass.PROVIDER_BILLING)
    return failure is not None and report.outcome is Outcome.FAILED and failure.failure_class in acted_on


class _Lesson:
    """One batch of ended attempts, limit by limit."""

    def __init__(self, ends: Sequence[DrawnEnd], watched: set[ResourceId]) -> None:
        rows = resource_store.load()
        self.known: Mapping[ResourceId, ResourceView] = {row.view.id: row.view for row in rows}
        self.ids = {row.name: row.view.id for row in rows}
        self.deltas: dict[ResourceId, float] = defaultdict(float)
        self.told: dict[ResourceId, list[Left]] = defaultdict(list)
        self.closed: dict[ResourceId, float] = {}
        self.calls: dict[ResourceId, list[Call]] = defaultdict(list)
        self.refused: dict[ResourceId, list[float]] = defaultdict(list)
        self.unpaid: dict[ResourceId, str] = {}
        for ended, report, drawn in ends:
            self._take(ended, report, drawn)
        troubled = watched | {r for r, calls in self.calls.items() if any(call.good is False for call in calls)}
        self.calls = {r: calls for r, calls in self.calls.items() if r in troubled}

    def _take(self, ended: settle_store.EndedRow, report: Report, drawn: Sequence[ResourceId]) -> None:
        actual = {self.ids[name]: used for name, used in report.actual.items() if name in self.ids}
        for resource, delta in corrections(drawn, ended.amounts, actual, self.known).items():
            self.deltas[resource] += delta
        for name, left in report.left.items():
            if name in self.ids:
                self.told[self.ids[name]].append(left)
        failure = report.failure
        retry_after_s = None if failure is None else failure.retry_after_s
        good = verdict_of(report.outcome, failure)
        for resource in self._behind(report, drawn):
            call = Call(ended.lease, good, ended.started_at, ended.took_s, retry_after_s)
            self.calls[resource].append(call)
        if failure is None:
            return
        closed_s = throttled_for_s(failure)
        if closed_s is not None:
            for resource in self._quota(report, drawn):
                self.closed[resource] = max(closed_s, self.closed.get(resource, 0.0))
                self.refused[resource].append(ended.started_at)
        if failure.failure_class is FailureClass.PROVIDER_BILLING:
            for resource in self._quota(report, drawn) or drawn:
                self.unpaid.setdefault(resource, failure.message)

    def _quota(self, report: Report, drawn: Sequence[ResourceId]) -> list[ResourceId]:
        """The limits that a provider's refusal is about: those that it names, else all buckets."""
        named = [self.ids[name] for name in report.quota if name in self.ids]
        return named or [r for r in drawn if self.known[r].kind is ResourceKind.TOKEN_BUCKET]

    def _behind(self, report: Report, drawn: Sequence[ResourceId]) -> Sequence[ResourceId]:
        """The limits behind which the provider stands, of those that the attempt drew on: nothing waits at others."""
        quota = set(self._quota(report, drawn))
        return [r for r in drawn if r in quota] or drawn

    def apply(self) -> None:
        """Write what was learned."""
        now = dispatch_store.load_now() if self.told else 0.0
        lowest = {
            resource: min(levels)
            for resource, told in self.told.items()
            if (levels := [n for left in told if (n := lowered(self.known[resource], left, now=now)) is not None])
        }
        touched = set(lowest) | set(self.deltas) | set(self.closed) | set(self.calls) | set(self.unpaid)
        if not touched:
            return
        before = store.lock(sorted(touched))
        if self.deltas or lowest:
            settle_store.correct_levels(self.deltas, lowest)
        if self.closed:
            settle_store.block_resources(self.closed)
        if self.calls or self.refused:
            after = {r: self._learned(r, lessons) for r, lessons in before.items()}
            changed = {r: lessons for r, lessons in after.items() if lessons != before[r]}
            if changed:
                store.store(changed)
                self._tell_breakers(before, changed)
        for message in dict.fromkeys(self.unpaid.values()):
            self._pause([r for r, said in self.unpaid.items() if said == message], message)

    def _learned(self, resource: ResourceId, lessons: store.Lessons) -> store.Lessons:
        pace, view, now = lessons.pace, self.known[resource], lessons.at
        calls = self.calls.get(resource, [])
        for started_at in sorted(self.refused.get(resource, ()), reverse=True):
            pace = after_refusal(pace, started_at=started_at, taken=lessons.taken, now=now)
        if any(call.good for call in calls) and resource not in self.refused:
            gives_per_s = effective_rate(view) if view.kind is ResourceKind.TOKEN_BUCKET else 0.0
            pace = after_success(pace, taken=lessons.taken, gives_per_s=gives_per_s, now=now)
        return lessons._replace(breaker=after_calls(lessons.breaker, calls, now=now), pace=pace)

    def _tell_breakers(
        self, before: Mapping[ResourceId, store.Lessons], after: Mapping[ResourceId, store.Lessons]
    ) -> None:
        """That a provider went down, or came back. A probe that failed is no news."""
        names = {resource: name for name, resource in self.ids.items()}
        for resource, lessons in after.items():
            was, now = before[resource].breaker, lessons.breaker
            if was.open_until is None and now.open_until is not None:
                calls = {"failed": now.failed, "calls": now.calls}
                announce(None, Alert.BREAKER_OPEN, {"resource": names[resource], **calls})
            elif was.open_until is not None and now.open_until is None:
                announce(None, Alert.BREAKER_CLOSED, {"resource": names[resource]})

    def _pause(self, resources: Sequence[ResourceId], message: str) -> None:
        """Once: what is paused already stays as it is, and is not told again."""
        reason = f"{BILLING_REASON}{message}"
        for name in store.pause(resources, actor=SYSTEM, reason=reason):
            author = Author(SYSTEM, SYSTEM, reason)
            record(author, "resource.pause", f"resource:{name}", before={"paused": False}, after={"paused": True})
            announce(None, Alert.LIMIT_PAUSED, {"resource": name, "why": reason})
