"""Reads and writes what operators declare: tenants, pools and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.declarations import PoolSettings, QuotaSettings
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.runs import RunQuota
from scheduler.policy.types import PoolId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("control.sql")


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant as declared. `monthly_nano` is what it may spend in a month, `alert_at` parts of it that are told."""

    id: TenantId
    slug: str
    name: str
    weight: float
    status: str
    time_zone: str
    version: int
    quota: QuotaSettings
    monthly_nano: int | None
    alert_at: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool as declared. `paused_at` is Unix seconds, None while it runs; `resume_at` None: a pause ends by hand."""

    id: PoolId
    name: str
    executor: str
    settings: PoolSettings
    paused_at: float | None
    paused_by: str
    pause_reason: str
    version: int
    resume_at: float | None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token that may be used now. `used_lately`: within the last ten minutes, as far as was noted."""

    public_id: str
    secret_sha256: bytes
    tenant: TenantId | None
    tenant_slug: str | None
    scopes: frozenset[str]
    pools: frozenset[str] | None
    used_lately: bool


@asked
def load_tenants(slugs: Sequence[str] | None = None) -> Question[list[TenantRow]]:
    """Tenants by slug, or all of them, in order of slug."""
    params = {"slugs": None if slugs is None else list(slugs)}
    return Question(_SQL["read_tenants"], params, lambda rows: [_tenant(row) for row in rows])


def _tenant(row: queries.Row) -> TenantRow:
    tenant, slug, name, weight, status, time_zone, version, monthly, alert_at, *limits = row
    start_rate, start_burst, max_in_flight, max_queued, steps, width, cost_nano = limits
    quota = QuotaSettings(
        start_rate=start_rate,
        start_burst=start_burst,
        max_in_flight=max_in_flight,
        max_queued=max_queued,
        max_steps_per_run=steps,
        max_width_per_run=width,
        max_cost_per_run_nano=cost_nano,
    )
    named = (TenantId(tenant), slug, name, weight, status, time_zone, version)
    return TenantRow(*named, quota, monthly_nano=monthly, alert_at=tuple(alert_at))


def load_run_quota(tenant: TenantId) -> RunQuota:
    """What the tenant lets each of its runs have."""
    row = queries.fetch_one(_SQL["read_run_quota"], {"tenant": tenant})
    return RunQuota() if row is None else RunQuota(*row)


@dataclass(frozen=True, slots=True)
class TenantUse:
    """What a tenant uses of its limits: attempts that run, tasks that wait, its start bucket if it was ever used."""

    in_flight: int
    queued: int
    level: float | None
    level_at: float | None
    now: float


@asked
def load_tenant_use(tenants: Sequence[TenantId]) -> Question[dict[TenantId, TenantUse]]:
    """What these tenants use now."""
    return Question(
        _SQL["read_tenant_use"],
        {"tenants": list(tenants)},
        lambda rows: {TenantId(tenant): TenantUse(*use) for tenant, *use in rows},
    )


def seat_as_idle(tenant: TenantId) -> None:
    """Let the tenant come back as one that was idle: it banked no credit while it was suspended."""
    queries.run(_SQL["seat_as_idle"], {"tenant": tenant})


def add_tenant(slug: str, *, name: str, weight: float, time_zone: str, quota: QuotaSettings) -> TenantId | None:
    """Add an active tenant; None when the slug is taken."""
    params = {"slug": slug, "name": name, "weight": weight, "time_zone": time_zone, **asdict(quota)}
    row = queries.fetch_one(_SQL["add_tenant"], params)
    return None if row is None else TenantId(row[0])


def edit_tenant(
    slug: str, *, version: int, name: str, weight: float, status: str, time_zone: str, quota: QuotaSettings
) -> int | None:
    """Change a tenant; the new version, or None when `version` is not the current one.

    What its start bucket got at the old rate stays; a new rate counts from now, and a first one starts full.
    """
    params = {
        "slug": slug,
        "version": version,
        "name": name,
        "weight": weight,
        "status": status,
        "time_zone": time_zone,
        **asdict(quota),
    }
    row = queries.fetch_one(_SQL["edit_tenant"], params)
    return None if row is None else int(row[0])


@asked
def load_pools(names: Sequence[str] | None = None) -> Question[list[PoolRow]]:
    """Pools by name, or all of them, in order of name."""
    params = {"names": None if names is None else list(names)}
    return Question(_SQL["read_pools"], params, lambda rows: [_pool(row) for row in rows])


def _pool(row: queries.Row) -> PoolRow:
    pool, name, executor, config, slots_min, slots_max, slots, max_attempts, initial_s, multiplier, max_s, *tail = row
    lease_ttl_s, timeout_s, duration_default_s, slo, autoscale, unknown_dependency, await_timeout_s, *tail = tail
    max_pending, overflow, allow_degraded, reservable_fraction, worker_second_nano, *rest = tail
    settings = PoolSettings(
        config=orjson.loads(config),
        slots_min=slots_min,
        slots_max=slots_max,
        slots=slots,
        max_attempts=max_attempts,
        backoff_initial_s=initial_s,
        backoff_multiplier=multiplier,
        backoff_max_s=max_s,
        lease_ttl_s=lease_ttl_s,
        timeout_s=timeout_s,
        duration_default_s=duration_default_s,
        slo=None if slo is None else orjson.loads(slo),
        autoscale=None if autoscale is None else AutoscaleSettings(**orjson.loads(autoscale)),
        unknown_dependency=UnknownDependency(unknown_dependency),
        await_timeout_s=await_timeout_s,
        max_pending=max_pending,
        overflow=overflow,
        allow_degraded=allow_degraded,
        reservable_fraction=reservable_fraction,
        worker_second_nano=worker_second_nano,
    )
    return PoolRow(PoolId(pool), name, executor, settings, *rest)


def add_pool(name: str, executor: str, settings: PoolSettings) -> PoolId | None:
    """Add a pool; None when the name is taken."""
    row = queries.fetch_one(_SQL["add_pool"], {"name": name, "executor": executor, **_pool_params(settings)})
    return None if row is None else PoolId(row[0])


def edit_pool(name: str, *, version: int, settings: PoolSettings) -> int | None:
    """Change a pool's settings; the new version, or None when `version` is not the current one."""
    row = queries.fetch_one(_SQL["edit_pool"], {"name": name, "version": version, **_pool_params(settings)})
    return None if row is None else int(row[0])


def _pool_params(settings: PoolSettings) -> dict[str, Any]:
    return {
        "config": orjson.dumps(dict(settings.config)).decode(),
        "slots_min": settings.slots_min,
        "slots_max": settings.slots_max,
        "slots": settings.slots,
        "max_attempts": settings.max_attempts,
        "backoff_initial_s": settings.backoff_initial_s,
        "backoff_multiplier": settings.backoff_multiplier,
        "backoff_max_s": settings.backoff_max_s,
        "lease_ttl_s": settings.lease_ttl_s,
        "timeout_s": settings.timeout_s,
        "duration_default_s": settings.duration_default_s,
        "slo": _json(settings.slo),
        "autoscale": None if settings.autoscale is None else orjson.dumps(settings.autoscale).decode(),
        "unknown_dependency": settings.unknown_dependency.value,
        "await_timeout_s": settings.await_timeout_s,
        "max_pending": settings.max_pending,
        "overflow": settings.overflow,
        "allow_degraded": settings.allow_degraded,
        "reservable_fraction": settings.reservable_fraction,
        "worker_second_nano": settings.worker_second_nano,
    }


def pause_pool(name: str, *, actor: str, reason: str, for_s: float | None = None) -> bool:
    """Pause a pool, for so many seconds or (None) until it is resumed; False when it is paused already or unknown."""
    params = {"name": name, "actor": actor, "reason": reason, "for_s": for_s}
    return queries.fetch_one(_SQL["pause_pool"], params) is not None


def end_pauses() -> list[tuple[str, str, str]]:
    """Resume the pools whose pause was to end by now: name, who had paused it, why."""
    return [(name, by, reason) for name, by, reason in queries.fetch(_SQL["end_pauses"])]


def resume_pool(name: str) -> bool:
    """Resume a pool; False when it is not paused or unknown."""
    return queries.fetch_one(_SQL["resume_pool"], {"name": name}) is not None


def _json(value: Mapping[str, object] | None) -> str | None:
    return None if value is None else orjson.dumps(dict(value)).decode()


def add_token(
    public_id: str,
    secret_sha256: bytes,
    *,
    name: str,
    tenant: TenantId | None,
    scopes: Sequence[str],
    pools: Sequence[str] | None,
    expires_at: float | None,
) -> None:
    """Add a token; `expires_at` is Unix seconds."""
    params = {
        "public_id": public_id,
        "secret_sha256": secret_sha256,
        "name": name,
        "tenant": tenant,
        "scopes": list(scopes),
        "pools": None if pools is None else list(pools),
        "expires_at": expires_at,
    }
    queries.run(_SQL["add_token"], params)


def find_token(public_id: str) -> TokenRow | None:
    """The token, if it may be used now; unknown, expired and revoked ones look the same."""
    row = queries.fetch_one(_SQL["find_token"], {"public_id": public_id})
    if row is None:
        return None
    public_id, secret_sha256, tenant, slug, _status, scopes, pools, used_lately = row
    return TokenRow(
        public_id,
        bytes(secret_sha256),
        None if tenant is None else TenantId(tenant),
        slug,
        frozenset(scopes),
        None if pools is None else frozenset(pools),
        used_lately,
    )


def revoke_token(public_id: str) -> bool:
    """Revoke a token; False when it is unknown or revoked already."""
    return queries.run(_SQL["revoke_token"], {"public_id": public_id}) == 1


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What a request with an idempotency key was answered. `body` is JSON text."""

    fingerprint: bytes
    status: int
    body: str


def lock_idempotency_key(scope: str, key: str) -> StoredAnswer | None:
    """Wait until nobody else works on this key, until the transaction ends; then its answer, if there is one."""
    params = {"scope": scope, "key": key}
    queries.run(_SQL["lock_idempotency_key"], params)
    row = queries.fetch_one(_SQL["find_idempotency_record"], params)
    return None if row is None else StoredAnswer(bytes(row[0]), row[1], row[2])


def add_idempotency_record(scope: str, key: str, answer: StoredAnswer) -> None:
    """Keep the answer to a request."""
    params = {
        "scope": scope,
        "key": key,
        "fingerprint": answer.fingerprint,
        "status": answer.status,
        "body": answer.body,
    }
    queries.run(_SQL["add_idempotency_record"], params)


def prune_idempotency_records(*, keep_s: float) -> int:
    """Forget answers older than `keep_s`; returns how many."""
    return queries.run(_SQL["prune_idempotency_records"], {"keep_s": keep_s})


@dataclass(frozen=True, slots=True)
class VitalSigns:
    """Seconds since an engine was seen and since any task started (None: never), and ready tasks of unpaused pools."""

    engine_seen_s: float | None
    last_start_s: float | None
    ready_in_open_pools: int


def load_vital_signs() -> VitalSigns:
    """Whether somebody works, and whether there is work."""
    row = queries.fetch_one(_SQL["read_vital_signs"])
    assert row is not None  # noqa: S101 - a SELECT of scalars gives a row
    return VitalSigns(*row)


def promise_not_to_write() -> None:
    """Make this transaction one that cannot write."""
    queries.run(_SQL["promise_not_to_write"])
