"""How good forecasts are, in virtual time: what was said against what came, on invented workloads and on a trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import django

from scheduler.bench.traffic import WORKLOADS, walk
from scheduler.bench.world import Reading, progress
from scheduler.policy.calibration import Report, report
from scheduler.replay.judged import judge
from scheduler.replay.reading import parse_setup, with_words
from scheduler.replay.trace import Trace, read_trace
from scheduler.replay.world import lay_out

TRACE_LIMITS_PER_S: Final = (3, 4, 6, 8, 10, 12)
TRACE_FORECASTS: Final = 64
MIXED: Final = ("classes.high.share=1", "classes.normal.share=3", "classes.low.share=1")
SHARED: Final = ("tenants.a.share=4", "tenants.b.share=2", "tenants.c.share=1")
INSIDE: Final = "forecast inside p90"
INSIDE_TELLING: Final = "forecast inside p90 above 1 s"
ERROR: Final = "forecast median error above 1 s"
COST: Final = "forecast cost"


class _Case(NamedTuple):
    """A workload to judge forecasts on: invented (`words` is None), or a trace under settings."""

    name: str
    words: tuple[str, ...] | None = None


async def forecast(
    *, minutes: float = 20.0, seed: int = 7, every_s: float = 10.0, only: str = "", trace: Path | None = None
) -> list[Reading]:
    """Part of the waits inside p90 (wanted: 0.85 to 0.97), and median error of waits above a second (0.30).

    `every_s`: about as often as the product looks ahead in its part of a processor. `only`: workloads that have these
    words in their name. `trace`: a file as `replay_trace` reads it; it is replayed under several limits, with classes
    and tenants too. Each processor judges one workload at a time. Raises ReplayRefused when the trace cannot be used,
    ValueError when no workload has these words.
    """
    known = None if trace is None else read_trace(trace)
    cases = [case for case in _cases(with_trace=known is not None) if only in case.name]
    if not cases:
        raise ValueError(f"no workload is called {only!r}; there are: {', '.join(c.name for c in _cases())}")
    found: dict[_Case, list[Reading]] = {}
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=django.setup) as processes:
        progress("forecast", 0, len(cases))
        asked = {processes.submit(_judge, case, known, minutes, seed, every_s): case for case in cases}
        for done in as_completed(asked):
            found[asked[done]] = done.result()
            progress(f"forecast ({asked[done].name})", len(found), len(cases))
    return [reading for case in cases for reading in found[case]]


def _cases(*, with_trace: bool = True) -> Iterator[_Case]:
    yield from (_Case(name) for name in WORKLOADS)
    mixes = {"": (), ", classes": MIXED, ", tenants": SHARED, ", classes and tenants": (*MIXED, *SHARED)}
    for mix, words in mixes.items() if with_trace else ():
        yield from (_Case(f"trace at {n}/s{mix}", (f"rpm={60 * n}", *words)) for n in TRACE_LIMITS_PER_S)


def _judge(case: _Case, trace: Trace | None, minutes: float, seed: int, every_s: float) -> list[Reading]:
    """In a process of its own."""
    if trace is not None and case.words is not None:
        setup = parse_setup("bench", with_words({}, [*case.words, f"seed={seed}"]))
        found = judge(lay_out(trace, setup), setup, forecasts=TRACE_FORECASTS)
        return _readings(found, {"workload": case.name, "seed": seed})
    began = time.thread_time()
    walked = walk(WORKLOADS[case.name], seconds=minutes * 60.0, seed=seed, every_s=every_s)
    cost_ms = 1_000.0 * (time.thread_time() - began) / max(1, walked.forecasts)
    settings: dict[str, object] = {"workload": case.name, "minutes": minutes, "seed": seed}
    return [*_readings(report(walked.outcomes), settings), Reading(COST, round(cost_ms, 1), "ms", settings)]


def _readings(found: Report, settings: dict[str, object]) -> list[Reading]:
    settings |= {"n": found.n, "n_above_1s": found.n_telling}
    return [
        Reading(INSIDE, round(found.inside_p90 or 0.0, 4), "part", settings),
        Reading(INSIDE_TELLING, round(found.inside_p90_telling or 0.0, 4), "part", settings),
        Reading(ERROR, round(found.median_error or 0.0, 4), "part", settings),
    ]


def as_table(readings: Sequence[Reading]) -> str:
    """One line for each workload."""
    rows: dict[str, dict[str, Reading]] = {}
    for reading in readings:
        rows.setdefault(str(reading.settings["workload"]), {})[reading.scenario] = reading
    lines = [
        f"{'workload':36}{'waits':>8}{'inside p90':>12}{'above 1 s':>12}{'of waits':>10}{'median error':>14}{'cost':>9}"
    ]
    for name, row in rows.items():
        settings = row[INSIDE].settings
        cost = f"{row[COST].value:.0f} ms" if COST in row else ""
        parts = [100.0 * row[each].value for each in (INSIDE, INSIDE_TELLING, ERROR)]
        lines.append(
            f"{name:36}{settings['n']:>8}{parts[0]:>10.1f} %{parts[1]:>10.1f} %{settings['n_above_1s']:>10}"
            f"{parts[2]:>12.1f} %{cost:>9}"
        )
    return "\n".join(lines)
