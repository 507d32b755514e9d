"""What operators say about how a pool's slots follow the demand, and what is decided for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Number, Whole
from scheduler.api.why_schemas import ReasonOut, present_reason
from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.reads.pool_why import PoolExplanation
from scheduler.reads.scale import PoolScale


class AutoscaleIn(In):
    """How the number of slots follows the demand; what is left out has its default. Times in seconds."""

    interval: Number = 1.0
    target_utilization: Number = Field(0.75, description="The part of the slots that arrivals keep busy")
    drain_time: Number = Field(30.0, description="Seconds within which a backlog is to be cleared")
    reservation_horizon: Number = Field(60.0, description="How far ahead fixed starts count")
    stabilization_window: Number = Field(60.0, description="Never below what was wanted this lately")
    cooldown: Number = Field(30.0, description="Seconds between two steps down")
    max_step_up_abs: Whole = Field(4, description="Slots that may be added at once, or as many as there are")
    max_step_down: Whole = Field(1, description="Slots that may be taken away at once")

    def settings(self) -> AutoscaleSettings:
        """By the names of the core."""
        return AutoscaleSettings(
            interval_s=self.interval,
            target_utilization=self.target_utilization,
            drain_time_s=self.drain_time,
            reservation_horizon_s=self.reservation_horizon,
            stabilization_window_s=self.stabilization_window,
            cooldown_s=self.cooldown,
            step_up_abs_max=self.max_step_up_abs,
            step_down_max=self.max_step_down,
        )


class AutoscaleOut(Out):
    """How the number of slots follows the demand. Times in seconds."""

    interval: float
    target_utilization: float
    drain_time: float
    reservation_horizon: float
    stabilization_window: float
    cooldown: float
    max_step_up_abs: int
    max_step_down: int

    @classmethod
    def of(cls, s: AutoscaleSettings) -> AutoscaleOut:
        """By the names of the API."""
        return cls(
            interval=s.interval_s,
            target_utilization=s.target_utilization,
            drain_time=s.drain_time_s,
            reservation_horizon=s.reservation_horizon_s,
            stabilization_window=s.stabilization_window_s,
            cooldown=s.cooldown_s,
            max_step_up_abs=s.step_up_abs_max,
            max_step_down=s.step_down_max,
        )


class NeedOut(Out):
    """One reason for slots: `arrivals`, `backlog`, or `slo` of the class in `priority`."""

    kind: str
    priority: str | None
    slots: float


class CeilingOut(Out):
    """The limit that can feed the fewest slots, and how many."""

    resource: str
    slots: float


class ScaleOut(Out):
    """How many slots a pool should have, and the arithmetic. Whoever starts workers reads `desired`."""

    pool: str
    desired: int = Field(description="Slots that there should be; divide by the slots of a worker")
    slots: int = Field(description="Slots that the pool may use now")
    min: int
    max: int
    autoscaled: bool
    demand: float | None = Field(description="Slots that the work asks for, before any bound")
    needs: list[NeedOut]
    reserved: int
    ceiling: CeilingOut | None
    arrivals_per_s: float | None
    service_s: float | None = Field(description="Mean seconds that a task keeps a slot")
    says: list[str]
    as_of: datetime | None = Field(description="When this was decided; an engine decides once per interval")


class ClassWaitOut(Out):
    """How a class of a pool waits."""

    priority: str
    waiting: int
    oldest_waiting_s: float | None
    slo_s: float | None = Field(description="Seconds that it may wait, where that was set")
    forecast: dict[str, float | None] | None = Field(
        description="p50_s and p90_s of a task submitted now; null where there is insufficient data"
    )


class PoolWhyOut(Out):
    """Every reason that holds now, most decisive first; how each class waits; what was decided about the slots."""

    pool: str
    state: str
    reasons: list[ReasonOut]
    overload_level: int = Field(description="0: not overloaded; from 1 on new work is refused, lowest class first")
    classes: list[ClassWaitOut]
    scale: ScaleOut
    as_of: datetime


def present_pool_why(found: PoolExplanation) -> PoolWhyOut:
    """The explanation as it is sent."""
    return PoolWhyOut(
        pool=found.pool.name,
        state=found.pool.state,
        reasons=[present_reason(reason) for reason in found.reasons],
        overload_level=found.pool.overload_level,
        classes=[
            ClassWaitOut(
                priority=each.name,
                waiting=each.waiting,
                oldest_waiting_s=None if each.oldest_waiting_s is None else round(each.oldest_waiting_s, 3),
                slo_s=each.slo_s,
                forecast=None if each.forecast is None else dict(each.forecast),
            )
            for each in found.classes
        ],
        scale=present_scale(found.scale),
        as_of=moment(found.as_of),
    )


def present_scale(found: PoolScale) -> ScaleOut:
    """The decision as it is sent."""
    view: Mapping[str, Any] = found.view or {}
    ceiling = view.get("ceiling")
    return ScaleOut(
        pool=found.pool,
        desired=found.desired,
        slots=found.settings.slots,
        min=found.settings.slots_min,
        max=found.settings.slots_max,
        autoscaled=found.settings.autoscale is not None,
        demand=view.get("demand"),
        needs=[NeedOut(**need) for need in view.get("needs", [])],
        reserved=view.get("reserved", 0),
        ceiling=None if ceiling is None else CeilingOut(**ceiling),
        arrivals_per_s=view.get("arrivals_per_s"),
        service_s=view.get("service_s"),
        says=list(found.says),
        as_of=at(found.as_of),
    )
