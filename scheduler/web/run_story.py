"""Decides how to tell a person where a run stands: its state in a word, its caps, its steps, what it left behind.

Pure: what was read goes in, lines for the template come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler.live import wording
from scheduler.live.drawing import Segment, segments
from scheduler.live.wording import dollars
from scheduler.policy.receipts import ClaimState
from scheduler.policy.runs import Cap, KillScope, RunState
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.reads.run_pages import Figures, ModelCost, Progress, StepRow, Story
from scheduler.reads.runs import KillRow, ListedReceipt, RunRow
from scheduler.web import run_drawing, task_story, times
from scheduler.web.run_drawing import Part, Scale
from scheduler.web.task_story import Chip, Figure, When, when

_CHIPS: Final = {
    RunState.ACTIVE: ("live", "Active", "ok"),
    RunState.PAUSED: ("pause", "Paused", "warn"),
    RunState.SUCCEEDED: ("ok", "Succeeded", "ok"),
    RunState.FAILED: ("cross", "Failed", "bad"),
    RunState.KILLED: ("cross", "Killed", "bad"),
}
_CAPS: Final = {Cap.STEPS: "steps", Cap.TOKENS: "tokens", Cap.COST: "money", Cap.WALL_CLOCK: "time"}
_RECEIPTS: Final = {
    ClaimState.CLAIMED: ("stale", "Claimed, no receipt yet", "warn"),
    ClaimState.DONE: ("ok", "Done", "ok"),
    ClaimState.ABANDONED: ("close", "Given up, not made", "quiet"),
}
_SHORT: Final = {
    TaskState.BLOCKED: Chip("stale", "Behind others", "quiet"),
    TaskState.RETRYING: Chip("warn", "Retrying", "warn"),
}
COUNTED_MAX: Final = 10_000


def chip_of(state: RunState) -> Chip:
    """The state as it is shown."""
    return Chip(*_CHIPS[state])


def capped(number: int) -> str:
    """A count that went no further than ten thousand."""
    return f"{wording.count(COUNTED_MAX)}+" if number > COUNTED_MAX else wording.count(number)


def ago(at: float, now: float) -> str:
    """How long ago, in words."""
    return f"{wording.duration(max(0.0, now - at))} ago"


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list. `bar` is its steps within its cap, `cost_bar` its money within its cap."""

    run: RunRow
    title: str
    chip: Chip
    note: str
    says: str
    bar: Sequence[Segment]
    bar_says: str
    width: str
    cost: str
    cost_cap: str
    cost_bar: Sequence[Segment]
    age: str
    created: When


def line_of(run: RunRow, progress: Progress, *, now: float) -> RunLine:
    """One row of the list."""
    done = max(run.steps - progress.running - progress.open, 0)
    parts = [("high", done), ("run", progress.running), ("low", progress.open)]
    cap = run.caps.max_cost_nano
    ended = run.finished_at
    return RunLine(
        run=run,
        title=title_of(run),
        chip=chip_of(run.state),
        note=run.reason,
        says=f"{wording.count(run.steps)} of {wording.count(run.caps.max_steps)}",
        bar=segments(parts, run.caps.max_steps),
        bar_says=f"{wording.count(done)} done, {wording.count(progress.running)} running, "
        f"{wording.count(progress.open)} waiting",
        width=f"{wording.count(progress.running)} of {wording.count(run.caps.max_width)}",
        cost=dollars(run.spent_nano),
        cost_cap="" if cap is None else dollars(cap),
        cost_bar=[] if cap is None else segments([(_heat(run.spent_nano, cap), run.spent_nano)], cap),
        age=wording.duration((now if ended is None else ended) - run.created_at),
        created=when(run.created_at),
    )


def _heat(used: float, most: float) -> str:
    return "hot" if used >= 0.8 * most else "use"


def title_of(run: RunRow) -> str:
    """What to call a run."""
    return run.name or f"Run {run.id}"


def list_figures(found: Figures) -> list[Figure]:
    """The numbers over the list."""
    return [
        Figure("Active", capped(found.active), "may start steps"),
        Figure("Paused", capped(found.paused), "held by a person until resumed"),
        Figure("Near a cap", capped(found.near_cap), "active, with 80 % of a cap used"),
        Figure("Killed", capped(found.killed_lately), "in the last 24 hours"),
        Figure("Steps running", wording.count(found.steps_running), "of all runs"),
        Figure("Steps waiting", capped(found.steps_open), "ready, scheduled or behind others"),
    ]


def list_headline(found: Figures) -> str:
    """How all runs stand, in a sentence."""
    if not (found.active or found.paused):
        return "No run is open."
    said = f"{wording.plural(found.active, 'run is', 'runs are')} active with "
    said += f"{wording.plural(found.steps_running, 'step')} running"
    if found.paused:
        said += f"; {wording.plural(found.paused, 'is', 'are')} paused"
    if found.near_cap:
        said += f"; {wording.plural(found.near_cap, 'is', 'are')} near a cap"
    return f"{said}."


def kill_sentence(kill: KillRow) -> str:
    """What is killed, in words."""
    if kill.scope is KillScope.EVERYTHING:
        return "Everything is killed"
    return f"The {kill.scope} {kill.name or '(gone)'} is killed"


def figures_of(story: Story) -> list[Figure]:
    """The numbers at the top of a run's page."""
    run, progress = story.detail.run, story.progress
    caps = run.caps
    done = max(run.steps - progress.running - progress.open, 0)
    ended = story.now if run.finished_at is None else run.finished_at
    cost_cap = "no cap" if caps.max_cost_nano is None else f"of {dollars(caps.max_cost_nano)}"
    tokens_cap = "no cap" if caps.max_tokens is None else f"of {wording.count(caps.max_tokens)}"
    wall_cap = "no cap" if caps.wall_s is None else f"of {wording.duration(caps.wall_s)}"
    taken_in = f"{wording.count(run.steps)} of {wording.count(caps.max_steps)} taken in"
    return [
        Figure("Steps done", wording.count(done), taken_in),
        Figure("Running", wording.count(progress.running), f"at most {wording.count(caps.max_width)} at once"),
        Figure("Waiting", wording.count(progress.open), f"{wording.count(progress.ready)} ready now"),
        Figure("Cost", dollars(run.spent_nano), cost_cap),
        Figure("Tokens", wording.count(run.tokens), tokens_cap),
        Figure("Time", wording.glance(ended - run.created_at), wall_cap),
    ]


@dataclass(frozen=True, slots=True)
class CapLine:
    """A cap, what is used and what is left of it."""

    name: str
    used: str
    most: str
    left: str
    bounded: bool
    bar: Sequence[Segment]


def caps_of(story: Story) -> list[CapLine]:
    """The caps of a run and what is left of each."""
    run, caps = story.detail.run, story.detail.run.caps
    spent_s = (story.now if run.finished_at is None else run.finished_at) - run.created_at
    return [
        _cap("Steps", run.steps, caps.max_steps, wording.count),
        _cap("Steps at once", story.progress.running, caps.max_width, wording.count),
        _cap("Money", run.spent_nano, caps.max_cost_nano, dollars),
        _cap("Tokens", run.tokens, caps.max_tokens, wording.count),
        _cap("Time", spent_s, caps.wall_s, wording.duration),
    ]


def _cap(name: str, used: float, most: float | None, say: Callable[[Any], str]) -> CapLine:
    if most is None:
        return CapLine(name, say(used), "no cap", wording.NONE, bounded=False, bar=[])
    bar = segments([(_heat(used, most), used)], most)
    return CapLine(name, say(used), say(most), say(max(most - used, 0)), bounded=True, bar=bar)


def stands(story: Story) -> Iterator[str]:
    """Where the run stands and what keeps it back, most important first."""
    run, progress = story.detail.run, story.progress
    for kill in story.kills:
        if kill.scope is KillScope.EVERYTHING or (kill.scope is KillScope.TENANT and kill.name == run.tenant):
            yield f"{kill_sentence(kill)} by {kill.actor}{_because(kill.reason)} Nothing starts until that is lifted."
    yield _state_sentence(run, progress)
    for alert in story.detail.alerts:
        yield f"It came near its cap of {_CAPS[alert.cap]} at {times.day_and_clock(alert.at)}."
    if story.waiting is not None and run.state is RunState.ACTIVE:
        said = story.waiting.reasons[0].text if story.waiting.reasons else "it is next."
        yield f"Of its steps, task {story.waiting.task} has been ready for longest: {said}"


def _state_sentence(run: RunRow, progress: Progress) -> str:
    running = wording.plural(progress.running, "step")
    match run.state:
        case RunState.ACTIVE if progress.running:
            return f"It is active: {running} of at most {wording.count(run.caps.max_width)} at once."
        case RunState.ACTIVE if progress.open:
            return f"It is active, and {wording.plural(progress.open, 'step waits', 'steps wait')}; none runs."
        case RunState.ACTIVE:
            return "It is active with nothing to do: its steps have ended, and nobody has finished it."
        case RunState.PAUSED:
            return f"It is paused{_because(run.reason)} It starts no further step; {running} that ran go on."
        case RunState.KILLED:
            return f"It was killed{_because(run.reason)} Only a resume lets it go on."
        case _:
            return f"It has ended: {run.state}{_because(run.reason)}"


def _because(reason: str) -> str:
    return f": “{reason.rstrip('.')}”." if reason else "."


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step in the list."""

    step: StepRow
    chip: Chip
    after: str
    took: str
    waited: str
    cost: str
    parts: Sequence[Part]
    says: str


def steps_of(story: Story, scale: Scale) -> list[StepLine]:
    """The steps of the page, each with its bar."""
    before: dict[int, list[str]] = {}
    for child, parent in story.edges:
        before.setdefault(child, []).append(str(parent))
    return [_step(step, story, scale, before.get(step.task, [])) for step in story.steps]


def _step(step: StepRow, story: Story, scale: Scale, before: list[str]) -> StepLine:
    attempts = story.attempts.get(step.task, ())
    spans = [attempt.ended - attempt.began for attempt in attempts]
    if step.running_since is not None:
        spans.append(story.now - step.running_since)
    first = min([a.began for a in attempts], default=step.running_since)
    until = first if first is not None else None if step.state in TERMINAL else story.now
    waited = None if step.ready_at is None or until is None else max(until - step.ready_at, 0.0)
    took = wording.duration(sum(spans)) if spans else wording.NONE
    chip = _SHORT.get(step.state) or task_story.chip_of(step.state)
    return StepLine(
        step=step,
        chip=chip,
        after=f"after {wording.name_list(before)}" if before else "",
        took=took,
        waited=wording.duration(waited),
        cost=wording.NONE if step.cost_nano is None else dollars(step.cost_nano),
        parts=run_drawing.parts_of(step, attempts, scale, now=story.now),
        says=f"{chip.word}: waited {wording.duration(waited)}, took {took}",
    )


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """An effect on the world outside."""

    step: str
    chip: Chip
    note: str
    at: When


def receipt_of(row: ListedReceipt) -> ReceiptLine:
    """One effect in words."""
    icon, word, tone = _RECEIPTS[row.state]
    note = "An earlier attempt died after claiming it: it may have been made twice." if row.unsure else ""
    return ReceiptLine(row.step, Chip(icon, word, tone), note, when(row.committed_at or row.claimed_at))


@dataclass(frozen=True, slots=True)
class CostLine:
    """What a model cost."""

    model: str
    attempts: str
    cost: str
    wasted: str
    bar: Sequence[Segment]


def cost_of(row: ModelCost, whole: int) -> CostLine:
    """One model's share of what the run cost."""
    bar = segments([("use", row.cost_nano - row.wasted_nano), ("hot", row.wasted_nano)], max(whole, 1))
    wasted = dollars(row.wasted_nano) if row.wasted_nano else wording.NONE
    return CostLine(row.model or "time of workers", wording.count(row.attempts), dollars(row.cost_nano), wasted, bar)
