"""The pools that this engine serves: their executors and what it offers of each.

A pool whose configuration cannot work is not offered, and said so once; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.engine.attempt import Executor, Names
from scheduler.engine.executors.http import HttpExecutor
from scheduler.engine.executors.http_config import HttpConfig, HttpConfigError
from scheduler.engine.executors.llm import LlmExecutor
from scheduler.engine.executors.python import Handler, HandlerError, PythonExecutor, load_handler
from scheduler.policy.types import PoolId, TenantId
from scheduler.providers.llm_config import LlmConfig, LlmConfigError
from scheduler.reads.engine import ServedPool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """A pool with its executor; `settings` is what the executor was made from."""

    pool: ServedPool
    executor: Executor
    quota: tuple[str, ...]


class Pools:
    """Executors by pool, kept in step with the pools' configuration. `update` on the loop, the rest from any thread."""

    def __init__(
        self, handlers: Mapping[str, Handler], *, only_handlers: bool = False, offers: Mapping[str, int] | None = None
    ) -> None:
        self._handlers = handlers
        self._only_handlers = only_handlers
        self._offers = offers
        self._served: dict[PoolId, Served] = {}
        self._faults: dict[PoolId, str] = {}
        self._tenants: dict[TenantId, str] = {}

    def update(self, pools: list[ServedPool], tenants: Mapping[TenantId, str]) -> list[Executor]:
        """Take the current pools and tenants; returns executors that no new attempt uses, to be closed when idle."""
        self._tenants = dict(tenants)
        before = self._served
        now: dict[PoolId, Served] = {}
        for pool in pools:
            if self._only_handlers and pool.name not in self._handlers:
                continue
            known = before.get(pool.id)
            served = (
                Served(pool, known.executor, known.quota)
                if known is not None and _same_executor(known.pool, pool)
                else self._serve(pool)
            )
            if served is not None:
                now[pool.id] = served
        # At once: other threads read it.
        self._served = now
        kept = {id(served.executor) for served in now.values()}
        return [served.executor for served in before.values() if id(served.executor) not in kept]

    def _serve(self, pool: ServedPool) -> Served | None:
        try:
            executor, quota = self._make(pool)
        except (LlmConfigError, HttpConfigError, HandlerError) as error:
            if self._faults.get(pool.id) != str(error):
                logger.error("pool %s is not served by this engine: %s", pool.name, error)  # noqa: TRY400 - a sentence
                self._faults[pool.id] = str(error)
            return None
        self._faults.pop(pool.id, None)
        return Served(pool, executor, quota)

    def _make(self, pool: ServedPool) -> tuple[Executor, tuple[str, ...]]:
        if pool.executor == "llm":
            config = LlmConfig.parse(pool.config)
            return LlmExecutor(config), (config.quota_resource,) if config.quota_resource else ()
        if pool.executor == "http":
            return HttpExecutor(HttpConfig.parse(pool.config)), ()
        handler = self._handlers.get(pool.name) or load_handler(pool.config)
        return PythonExecutor(handler, name=f"pool {pool.name}"), ()

    def offers(self) -> dict[PoolId, int]:
        """Slots that this engine offers by pool: all, if nothing else was said; the pool's own slots bound the sum."""
        if self._offers is not None:
            return {pool: self._offers.get(served.pool.name, 0) for pool, served in self._served.items()}
        return {pool: served.pool.slots_max for pool, served in self._served.items()}

    def get(self, pool: PoolId) -> Served | None:
        """The pool, if it is served here."""
        return self._served.get(pool)

    def names(self, served: Served, tenant: TenantId) -> Names:
        """What a handler is told."""
        return Names(served.pool.name, self._tenants.get(tenant, str(tenant)), served.quota)

    def executors(self) -> list[Executor]:
        """All executors."""
        return [served.executor for served in self._served.values()]


def _same_executor(before: ServedPool, after: ServedPool) -> bool:
    return (before.executor, before.config) == (after.executor, after.config)
