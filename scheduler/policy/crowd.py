"""Decides which lanes a forecast follows one by one, so that its cost has a bound with thousands of tenants.

The lanes with the most work are followed as they are. The rest of each pool, class and demand becomes one lane of one
tenant who has the weight of all of them; a place in it stands for that place in each of them, for fairness goes round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from scheduler.policy.learned import Learned
from scheduler.policy.scene import Arrival, Scene, Waiting
from scheduler.policy.types import LaneKey, TenantId, TenantView

LANES_MAX: Final = 16
MERGED_MAX: Final = 8
NEWCOMER: Final = TenantId(0)
OTHERS: Final = TenantId(-1)
"""Tenants that are not there: ids in the database begin at one."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A scene with few lanes, those that are followed (a newcomer's in each class too), and what became of the rest.

    `sharing` says how many lanes stand behind a merged one.
    """

    scene: Scene
    lanes: tuple[LaneKey, ...]
    merged: Mapping[LaneKey, LaneKey]
    sharing: Mapping[LaneKey, int]

    @property
    def known(self) -> set[LaneKey]:
        """Lanes whose arrivals are followed, by themselves or in what they were merged into."""
        return {*self.lanes, *self.merged}

    def followed(self, arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
        """Arrivals of `known` lanes, as those of the lanes that they were merged into."""
        for arrival in arrivals:
            lane = self.merged.get(arrival.lane)
            yield arrival if lane is None else arrival._replace(lane=lane)


def condense(scene: Scene, learned: Learned) -> Crowd:
    """Choose the lanes to follow among all that wait or came lately, in pools about which enough is known."""
    number = {lane: sum(w.number for w in places) for lane, places in scene.waiting.items()}
    for lane in learned.arrivals.amounts:
        if lane.tenant in scene.tenants and lane.demand in scene.demands:
            number.setdefault(lane, 0)
    known = [n for n in number if n.pool in scene.pools and learned.is_enough(n.pool)]
    known.sort(key=lambda n: (-number[n] - learned.arrivals.surge(n), n))
    kept, rest = known[:LANES_MAX], known[LANES_MAX:]
    groups: dict[LaneKey, list[LaneKey]] = defaultdict(list)
    for lane in rest:
        groups[lane._replace(tenant=OTHERS)].append(lane)
    largest = sorted(groups, key=lambda g: (-sum(number[n] for n in groups[g]), g))[:MERGED_MAX]
    newcomers = {(n.pool, n.priority): n._replace(tenant=NEWCOMER) for n in reversed(known)}
    waiting = {lane: scene.waiting[lane] for lane in kept if lane in scene.waiting}
    waiting.update({group: _interleaved([scene.waiting.get(n, ()) for n in groups[group]]) for group in largest})
    weight = sum(scene.tenants[t].weight for t in {n.tenant for n in rest})
    extra = {NEWCOMER: TenantView(NEWCOMER), OTHERS: TenantView(OTHERS, max(1.0, weight))}
    return Crowd(
        replace(scene, waiting=waiting, tenants={**scene.tenants, **extra}),
        (*kept, *largest, *newcomers.values()),
        {lane: group for group in largest for lane in groups[group]},
        {group: len(groups[group]) for group in largest},
    )


def _interleaved(lanes: Iterable[tuple[Waiting, ...]]) -> tuple[Waiting, ...]:
    """Round by round one of each lane; a lane that has a pile at the end puts it in the round after."""
    rounds: dict[int, list[Waiting]] = defaultdict(list)
    for places in lanes:
        for n, place in enumerate(places):
            rounds[n].append(place)
    return tuple(place for n in sorted(rounds) for place in rounds[n])
