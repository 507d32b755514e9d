"""Several pools at once, by kind: the page on which they are chosen, and the form that pauses or resumes them.

All of them or none: what was chosen is done in one transaction, and one undo takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from scheduler.errors import NotFound, Refused
from scheduler.live import wording
from scheduler.reads.pools import PoolDetail, list_pools
from scheduler.services.pools import pause_pools, resume_pools
from scheduler.web.access import OPERATE_POOL, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.pages import PAUSES
from scheduler.web.pool_actions import ASK_WHY, PAUSE_CHOICES
from scheduler.web.shell import page
from scheduler.web.task_story import Chip
from scheduler.web.toast import Toast, Undo

NONE_CHOSEN = "Tick the pools that you mean, or a whole kind."


@require_safe
@needs(OPERATE_POOL)
def choose(request: HttpRequest) -> HttpResponse:
    """Pools by kind, to be ticked, and what can be done with them."""
    return _page(request)


@require_POST
@needs(OPERATE_POOL)
def pause(request: HttpRequest) -> HttpResponse:
    """Nothing new starts in those that are ticked. The reason is required: the next person will read it."""
    names, reason, for_s = _chosen(request), reason_of(request), request.POST.get("for_s", "")
    if not names or not reason:
        return _page(request, status=422, fault=ASK_WHY if names else NONE_CHOSEN)
    try:
        ends = float(for_s) if for_s in PAUSE_CHOICES else None
        paused = pause_pools(names, for_s=ends, actor=actor_of(request), reason=reason)
    except (NotFound, Refused) as refusal:
        return _page(request, status=422, fault=f"{refusal.detail} Nothing was changed.")
    return _done(request, "Paused", paused, "pools-resume", reason="undo")


@require_POST
@needs(OPERATE_POOL)
def resume(request: HttpRequest) -> HttpResponse:
    """Those that are ticked start again with what waits."""
    names = _chosen(request)
    if not names:
        return _page(request, status=422, fault=NONE_CHOSEN)
    try:
        resumed = resume_pools(names, actor=actor_of(request), reason=reason_of(request))
    except NotFound as refusal:
        return _page(request, status=422, fault=f"{refusal.detail} Nothing was changed.")
    return _done(request, "Resumed", resumed, "pools-pause", reason="as before")


def _chosen(request: HttpRequest) -> list[str]:
    """The pools that were ticked, those of the kinds that were, and those that an undo names."""
    kinds = set(request.POST.getlist("kind"))
    of_kinds = [each.name for each in list_pools() if each.executor in kinds] if kinds else []
    named = request.POST.get("names", "").splitlines()
    return list(dict.fromkeys([*request.POST.getlist("pool"), *of_kinds, *named]))


def _done(request: HttpRequest, did: str, names: list[str], back: str, *, reason: str) -> HttpResponse:
    where = reverse("ops:pools-together")
    if not names:
        return done(request, where, Toast("They were all so already. Nothing was changed."))
    undo = Undo(reverse(f"ops:{back}"), reason=reason, values={"names": "\n".join(names)})
    says = f"{did} {wording.plural(len(names), 'pool')}: {wording.name_list(names)}."
    return done(request, where, Toast(says, undo=undo))


def _page(request: HttpRequest, *, status: int = 200, fault: str = "") -> HttpResponse:
    ticked, kinds = set(request.POST.getlist("pool")), set(request.POST.getlist("kind"))
    return page(
        request,
        "ops/pools_together.html",
        title="Several pools",
        nav="pools",
        status=status,
        kinds=_by_kind(list_pools(), ticked, kinds),
        pauses=PAUSES,
        chosen_for=request.POST.get("for_s", ""),
        reason=reason_of(request),
        fault=fault,
    )


def _by_kind(pools: Iterable[PoolDetail], ticked: set[str], kinds: set[str]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for pool in pools:
        chip = Chip("ok", "Running", "ok") if pool.pause is None else Chip("pause", "Paused", "quiet")
        waiting = sum(pool.waiting.values())
        line = {"pool": pool, "chip": chip, "waiting": wording.count(waiting), "ticked": pool.name in ticked}
        found.setdefault(pool.executor, []).append(line)
    return [{"kind": kind, "lines": lines, "ticked": kind in kinds} for kind, lines in sorted(found.items())]
