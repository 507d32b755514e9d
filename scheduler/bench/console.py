"""The console in a full database: what each page, the first view, a socket and many of them cost.

At full size filling takes ten minutes or more and about eight gigabytes; `--set dead=…` and the like make it smaller.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from contextlib import suppress
from http.client import HTTPException
from typing import Final

from asgiref.sync import sync_to_async
from django.core.management import call_command

from scheduler import conf
from scheduler.bench.cpu import Cpu
from scheduler.bench.filling import SIZES, fill_database
from scheduler.bench.page_visits import Visited, visit_all
from scheduler.bench.visits import Site, engine_process, sign_in, web_process
from scheduler.bench.watching import first_changes, pictures, sights, stirred, wait_for_pictures, watching
from scheduler.bench.world import Reading
from scheduler.policy.figures import quantile
from scheduler.services.snapshot import take_snapshot
from scheduler.services.summing import sum_up
from scheduler.store import bench as store
from scheduler.store import sums

in_thread = sync_to_async
TASK_BYTES: Final = 2_500
"""What a dead letter takes on disk with its task, payload, attempt, line of the ledger, and their indexes."""
FEW, MANY = 1, 500
SOAK_PARTS: Final = (0.1, 0.5, 1.0)
SOAK_VISIT_EVERY_S: Final = 1.0
SETTLED_AFTER_S: Final = 15.0
"""When what connections did before has reached the server's statistics: an idle one reports within ten seconds."""


async def console(
    *, visits: int = 20, sockets: int = 2_000, window_s: int = 20, soak_s: int = 0, **sizes: int
) -> list[Reading]:
    """Fill the database, then measure (`measure`)."""
    asked = SIZES | sizes
    _check(asked)
    await in_thread(fill_database)(asked)
    await in_thread(_sum_up_all)()
    return await measure(visits=visits, sockets=sockets, window_s=window_s, soak_s=soak_s)


async def measure(*, visits: int, sockets: int, window_s: int, soak_s: int) -> list[Reading]:
    """Measure a filled database: pages alone, then what is live beside an engine, then what stands by costs."""
    await in_thread(call_command)("collectstatic", interactive=False, verbosity=0)
    await in_thread(take_snapshot)(None, {}, interval_s=1.0)
    cookie = await in_thread(sign_in)()
    with web_process(cookie) as site:
        readings = [each for page in await in_thread(visit_all)(site, visits) for each in _page(page, visits)]
        with engine_process():
            readings += await _live(site, visits)
        with pictures():
            readings += await _load(site, window_s)
            readings += await _crowd(site, sockets, window_s)
            if soak_s:
                readings += await _soak(site, soak_s)
    return readings


def _sum_up_all() -> None:
    """As the leading engine would have long since."""
    while sums.load_summed() < sums.load_newest_entry():
        if not sum_up():
            time.sleep(0.1)


def _check(sizes: dict[str, int]) -> None:
    needed = TASK_BYTES * (sizes["dead"] + sizes["done"] + sizes["waiting"])
    free = shutil.disk_usage(conf.current().data_dir.parent).free
    if free < 2 * needed:
        sys.exit(f"This needs about {needed / 1e9:.0f} GB and as much to spare; {free / 1e9:.0f} GB are free.")
    unknown = sorted(set(sizes) - set(SIZES))
    if unknown:
        sys.exit(f"There is no setting {unknown[0]!r}; sizes are {', '.join(SIZES)}.")


def _page(page: Visited, visits: int) -> list[Reading]:
    settings = {"page": page.name, "status": page.status, "visits": visits}
    return [
        Reading("console_page_p50", page.p50_ms, "ms", settings),
        Reading("console_page_p95", page.p95_ms, "ms", settings),
        Reading("console_page_cpu_web", page.web_cpu_ms, "ms", settings),
        Reading("console_page_cpu_database", page.database_cpu_ms, "ms", settings),
        Reading("console_page_sent", page.sent_bytes, "bytes", settings),
    ]


async def _live(site: Site, times: int) -> list[Reading]:
    await in_thread(wait_for_pictures)()
    with stirred("crowd-2"):
        changes = await first_changes(site, times)
    seen = await sights(site, 2 * times, pool="crowd-1")
    return [
        Reading("console_first_change_p95", quantile(changes, 0.95), "s", {"times": times}),
        Reading("console_sight_p50", quantile(seen, 0.5), "s", {"times": 2 * times}),
        Reading("console_sight_p99", quantile(seen, 0.99), "s", {"times": 2 * times}),
    ]


async def _load(site: Site, window_s: int) -> list[Reading]:
    """Transactions per second of the database while few and many watch; one of each second is the picture's."""
    readings = []
    for number in (FEW, MANY):
        async with watching(site, number):
            await asyncio.sleep(SETTLED_AFTER_S)
            before, began = await in_thread(store.count_transactions)(), time.perf_counter()
            # Long enough for a round of asking who may still watch.
            await asyncio.sleep(max(window_s, 35))
            rate = (await in_thread(store.count_transactions)() - before) / (time.perf_counter() - began)
        readings.append(Reading("console_database_load", rate, "transactions/s", {"viewers": number}))
    return readings


async def _crowd(site: Site, sockets: int, window_s: int) -> list[Reading]:
    """What many sockets cost the web process, as a part of one processor, while the page changes each second."""
    settings = {"sockets": sockets, "window_s": window_s}
    async with watching(site, sockets) as watchers:
        before = watchers.messages, watchers.characters
        cpu, began = await in_thread(Cpu)({"web": [site.pid]}), time.perf_counter()
        await asyncio.sleep(window_s)
        took_s = time.perf_counter() - began
        spent = (await in_thread(cpu.spent_s)())["web"]
        messages, characters = watchers.messages - before[0], watchers.characters - before[1]
        return [
            Reading("console_sockets_cpu", spent / took_s, "of a core", settings),
            Reading("console_sockets_messages", messages / took_s / sockets, "messages/s each", settings),
            Reading("console_sockets_message", characters / max(1, messages), "characters", settings),
            Reading("console_sockets_lost", watchers.lost, "sockets", settings),
            Reading("console_sockets_memory", site.rss_mb(), "MB", settings),
        ]


async def _soak(site: Site, seconds: int, sockets: int = 200) -> list[Reading]:
    """What the web process holds after a tenth, a half and all of the time, with viewers and a visit now and then."""
    readings = []
    async with watching(site, sockets) as watchers:
        began = time.monotonic()
        for part in SOAK_PARTS:
            while time.monotonic() - began < part * seconds:
                # A server closes a line that was silent for long; the next visit opens another.
                with suppress(OSError, HTTPException):
                    await asyncio.to_thread(site.visit, "/ops/tasks/?filter=state:dead")
                await asyncio.sleep(SOAK_VISIT_EVERY_S)
            settings = {"after_s": round(part * seconds), "sockets": sockets, "lost": watchers.lost}
            readings.append(Reading("console_soak_memory", site.rss_mb(), "MB", settings))
    return readings
