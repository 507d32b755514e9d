"""Says whether this process can do its work, in words a probe and a person both understand.

Ready means: the database answers and has every migration. A missing engine or a backlog that stands still is told, but
does not take the web process out of service: it could not help by being restarted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from scheduler.store import control

ENGINE_FRESH_S: Final = 15.0
STANDSTILL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Health:
    """`ready`: this process may be given requests. `degraded`: it may, but something else needs a person."""

    ready: bool
    checks: tuple[Check, ...]

    @property
    def degraded(self) -> bool:
        """Whether any check failed."""
        return not all(check.ok for check in self.checks)


def health() -> Health:
    """Look at everything. Never raises for a database that does not answer."""
    try:
        signs = control.load_vital_signs()
        migrated = _migrated()
    except DatabaseError:
        return Health(ready=False, checks=(Check("database", ok=False, text="The database does not answer."),))
    return Health(
        ready=migrated.ok,
        checks=(Check("database", ok=True, text="The database answers."), migrated, _engine(signs), _backlog(signs)),
    )


_known_migrated: list[bool] = []


def _migrated() -> Check:
    """Migrations are never taken back under a running process, so once is enough."""
    if not _known_migrated:
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if missing:
            return Check("migrations", ok=False, text=f"{missing} migrations are missing; run manage.py migrate.")
        _known_migrated.append(True)
    return Check("migrations", ok=True, text="Every migration is applied.")


def _engine(signs: control.VitalSigns) -> Check:
    if signs.engine_seen_s is None:
        return Check("engine", ok=False, text="No engine is connected: tasks are taken in, but none will start.")
    if signs.engine_seen_s > ENGINE_FRESH_S:
        text = f"No engine was seen for {signs.engine_seen_s:.0f} s: tasks are taken in, but none will start."
        return Check("engine", ok=False, text=text)
    return Check("engine", ok=True, text="An engine is at work.")


def _backlog(signs: control.VitalSigns) -> Check:
    if not signs.ready_in_open_pools or signs.last_start_s is None or signs.last_start_s < STANDSTILL_S:
        return Check("backlog", ok=True, text="What waits is moving, or nothing waits.")
    text = f"{signs.ready_in_open_pools} tasks are ready, but none has started for {signs.last_start_s:.0f} s."
    return Check("backlog", ok=False, text=text)
