"""Bounds of what operators may declare, at their edges."""

import math
from dataclasses import replace

import pytest

from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.declarations import (
    LimitSettings,
    PoolSettings,
    fault_in_name,
    fault_in_reason,
    fault_in_slug,
    faults_in_limit,
    faults_in_pool,
    faults_in_scopes,
    faults_in_tenant,
)
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.types import ResourceKind

BUCKET, SEMAPHORE = ResourceKind.TOKEN_BUCKET, ResourceKind.SEMAPHORE


@pytest.mark.parametrize("name", ["a", "llm", "A-b_c.d:e", "x" * 64, "0"])
def test_names_that_do(name: str) -> None:
    assert fault_in_name(name) is None


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a/b", "ä", "a\n", "a\x00", "*"])
def test_names_that_do_not(name: str) -> None:
    assert fault_in_name(name) is not None


@pytest.mark.parametrize(("slug", "fine"), [("acme", True), ("a-1_b", True), ("-a", False), ("A", False), ("", False)])
def test_slugs(slug: str, fine: bool) -> None:
    assert (fault_in_slug(slug) is None) == fine


def test_the_widest_pool_is_fine() -> None:
    widest = PoolSettings(
        slots_min=0,
        slots_max=10_000,
        slots=10_000,
        max_attempts=100,
        backoff_initial_s=0.0,
        backoff_max_s=86_400.0,
        lease_ttl_s=3_600.0,
        timeout_s=7 * 86_400.0,
        slo={"critical": 0.001, "high": 2.0, "normal": 60.0, "low": 7 * 86_400.0},
        autoscale=AutoscaleSettings(target_utilization=1.0, reservation_horizon_s=0.0, cooldown_s=0.0),
        unknown_dependency=UnknownDependency.AWAIT,
        await_timeout_s=7 * 86_400.0,
    )
    assert faults_in_pool("llm", "llm", widest) == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"slots_max": 10_001}, "max"),
        ({"slots_min": -1}, "min"),
        ({"slots_min": 11}, "min"),
        ({"slots": 11}, "slots"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"slo": {"high": 0.0}}, "slo"),
        ({"slo": {"urgent": 1.0}}, "slo"),
        ({"autoscale": AutoscaleSettings(target_utilization=0.0)}, "autoscale"),
        ({"autoscale": AutoscaleSettings(interval_s=math.nan)}, "autoscale"),
        ({"autoscale": AutoscaleSettings(step_down_max=0)}, "autoscale"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"backoff_initial_s": -0.1}, "initial_backoff"),
        ({"backoff_multiplier": 0.5}, "multiplier"),
        ({"backoff_max_s": math.inf}, "max_backoff"),
        ({"lease_ttl_s": 0.9}, "lease_ttl"),
        ({"lease_ttl_s": 3_601.0}, "lease_ttl"),
        ({"lease_ttl_s": math.nan}, "lease_ttl"),
        ({"timeout_s": 0.0}, "timeout"),
        ({"duration_default_s": 0.0}, "default_duration"),
        ({"await_timeout_s": -1.0}, "await_timeout"),
        ({"config": {"a": "\x00"}}, "config"),
    ],
)
def test_a_pool_out_of_bounds_names_the_field(changes: dict[str, object], field: str) -> None:
    settings = replace(PoolSettings(), **changes)  # type: ignore[arg-type]  # a builder
    assert field in {fault.loc[0] for fault in faults_in_pool("p", "python", settings)}


def test_an_unknown_executor_is_told_which_there_are() -> None:
    (fault,) = faults_in_pool("p", "fortran", PoolSettings())
    assert "python, llm, remote, http" in fault.msg


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        (BUCKET, LimitSettings(rate=-1.0), "rate"),
        (BUCKET, LimitSettings(rate=math.nan), "rate"),
        (BUCKET, LimitSettings(burst=2e9), "burst"),
        (BUCKET, LimitSettings(permits=1), "permits"),
        (SEMAPHORE, LimitSettings(permits=-1), "permits"),
        (SEMAPHORE, LimitSettings(permits=1_000_001), "permits"),
        (SEMAPHORE, LimitSettings(permits=1, rate=1.0), "rate"),
        (SEMAPHORE, LimitSettings(permits=1, margin=1.0), "margin"),
        (SEMAPHORE, LimitSettings(permits=1, margin=math.nan), "margin"),
    ],
)
def test_a_limit_out_of_bounds_names_the_field(kind: ResourceKind, settings: LimitSettings, field: str) -> None:
    assert field in {fault.loc[0] for fault in faults_in_limit("r", kind, settings)}


def test_zero_is_a_pause_and_allowed() -> None:
    assert faults_in_limit("r", BUCKET, LimitSettings()) == ()
    assert faults_in_limit("r", SEMAPHORE, LimitSettings()) == ()


def test_tenants() -> None:
    assert faults_in_tenant("acme", weight=0.0, status="suspended") == ()
    faults = faults_in_tenant("Acme", weight=math.inf, status="gone")
    assert {fault.loc[0] for fault in faults} == {"slug", "weight", "status"}


def test_scopes() -> None:
    assert faults_in_scopes(["read", "submit"]) == ()
    assert len(faults_in_scopes([])) == 1
    assert "root" in faults_in_scopes(["read", "root"])[0].msg


@pytest.mark.parametrize(("reason", "fine"), [("", True), ("x" * 500, True), ("x" * 501, False), ("\x00", False)])
def test_reasons(reason: str, fine: bool) -> None:
    assert (fault_in_reason(reason) is None) == fine
