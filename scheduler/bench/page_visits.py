"""Every page of the console, and the questions that cost most: where they are, and what each visit costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import URLPattern, get_resolver, reverse

from scheduler.bench.cpu import Cpu
from scheduler.bench.visits import Site
from scheduler.bench.world import progress
from scheduler.models import AuditEvent, DeadGroup, DeadLetter, Operation, Run, Schedule, Task, Tenant, Worker
from scheduler.policy.figures import quantile

_UNVISITED: Final = {"audit-export", "sign-out", "poll", "operation-progress"}
"""No pages: a file of any length, and what pages ask for by themselves."""

QUESTIONS: Final[dict[str, tuple[str, dict[str, object]]]] = {
    "tasks, of a pool": ("tasks", {"filter": "pool:crowd-1"}),
    "tasks, waiting": ("tasks", {"filter": "state:waiting"}),
    "tasks, retrying": ("tasks", {"filter": "state:retrying"}),
    "tasks, succeeded": ("tasks", {"filter": "state:succeeded"}),
    "tasks, dead": ("tasks", {"filter": "state:dead"}),
    "tasks, cancelled (none)": ("tasks", {"filter": "state:cancelled"}),
    "tasks, kind of none": ("tasks", {"filter": "kind:nobody"}),
    "tasks, text of none": ("tasks", {"filter": '"nobody wrote this"'}),
    "tasks, reason of none": ("tasks", {"filter": "reason:permanent"}),
    "tasks, cost of none": ("tasks", {"filter": "cost>1000"}),
    "tasks, attempts of none": ("tasks", {"filter": "attempts>=9"}),
    "tasks, key of none": ("tasks", {"filter": "key:nobody"}),
    "tasks, waiting of none": ("tasks", {"filter": "state:waiting kind:nobody"}),
    "tasks, of a tenant": ("tasks", {"filter": "tenant:crowd-0007"}),
    "tasks, of a tenant and none": ("tasks", {"filter": "tenant:crowd-0007 kind:nobody"}),
    "tasks, dead of a tenant": ("tasks", {"filter": "state:dead tenant:crowd-0007"}),
    "tasks, dead of a pool": ("tasks", {"filter": "state:dead pool:crowd-1"}),
    "tasks, dead of none": ("tasks", {"filter": "state:dead kind:nobody"}),
    "tasks, dead, text of none": ("tasks", {"filter": 'state:dead "nobody wrote this"'}),
    "tasks, discarded (none)": ("tasks", {"filter": "state:discarded"}),
    "tasks, first page there is": ("tasks", {"older": 60}),
    "tasks, dead, first there is": ("tasks", {"filter": "state:dead", "older": 60}),
    "tasks, from the other end": ("tasks", {"newer": 10}),
    "dead, of a tenant": ("dead", {"filter": "tenant:crowd-0007"}),
    "dead, of none": ("dead", {"filter": "kind:nobody"}),
    "operation, replay of all dead": ("operation-new", {"kind": "replay", "filter": "state:dead"}),
    "operation, cancel of all waiting": ("operation-new", {"kind": "cancel", "filter": "state:waiting"}),
    "operation, replay of none": ("operation-new", {"kind": "replay", "filter": "kind:nobody"}),
    "cost, today": ("cost", {"days": 1}),
    "cost, 7 days": ("cost", {"days": 7}),
    "cost, 90 days": ("cost", {"days": 90}),
    "cost, 90 days of a tenant": ("cost", {"days": 90, "tenant": "crowd-0007"}),
    "cost, by model": ("cost", {"days": 30, "by": "model"}),
    "tenants, by burn": ("tenants", {"sort": "burn"}),
    "tenants, named": ("tenants", {"q": "crowd-029"}),
    "runs, active": ("runs", {"state": "active"}),
    "runs, killed (none)": ("runs", {"state": "killed"}),
    "runs, of a tenant": ("runs", {"tenant": "crowd-0007"}),
    "schedules, of a tenant": ("schedules", {"tenant": "crowd-0007"}),
    "slo, what if": ("slo", {"of": "resource:crowd-1", "value": 50}),
    "audit, of a person": ("audit", {"actor": "person-7"}),
    "audit, of nobody": ("audit", {"actor": "nobody"}),
    "audit, of an action": ("audit", {"action": "pool.pause"}),
}
"""What is asked of pages that take questions: the route, and what follows its question mark."""


_NEWEST: Final[dict[str, QuerySet[Any]]] = {
    "operation_id": Operation.objects.all(),
    "run_id": Run.objects.all(),
    "schedule_id": Schedule.objects.all(),
    "worker_id": Worker.objects.all(),
    "event_id": AuditEvent.objects.all(),
}


@dataclass(frozen=True, slots=True)
class Visited:
    """What visits of one page came to: times in ms, processor time of the web process and of the database in ms."""

    name: str
    status: int
    p50_ms: float
    p95_ms: float
    web_cpu_ms: float
    database_cpu_ms: float
    sent_bytes: int


def addresses() -> dict[str, str]:
    """Every page that can be read, and every question, by a name."""
    found = {}
    for pattern in _routes():
        name = str(pattern.name)
        if name not in _UNVISITED:
            parts = {part: _something(part) for part in pattern.pattern.converters}
            found[name] = reverse(f"ops:{name}", kwargs=parts)
    biggest = DeadGroup.objects.order_by("-n").first()
    if biggest is not None:
        found["dead-group, biggest"] = reverse("ops:dead-group", args=[f"{biggest.fingerprint:016x}"])
    waiting = Task.objects.filter(state="ready").order_by("-id").first()
    if waiting is not None:
        found["task, waiting"] = reverse("ops:task", args=[waiting.pk])
    for name, (route, asked) in QUESTIONS.items():
        found[name] = f"{reverse(f'ops:{route}')}?{urlencode(asked)}"
    return found


def _routes() -> list[URLPattern]:
    """The console's routes that a reader may load, as they say themselves."""
    resolver = get_resolver().namespace_dict["ops"][1]
    return [p for p in resolver.url_patterns if isinstance(p, URLPattern)]


def _something(part: str) -> object:
    """Something that exists for a part of an address."""
    if part in _NEWEST:
        return _NEWEST[part].order_by("-pk").values_list("pk", flat=True)[0]
    if part == "task_id":
        return DeadLetter.objects.order_by("-id").values_list("task_id", flat=True)[0]
    if part == "fingerprint":
        return f"{DeadLetter.objects.order_by('-id').values_list('fingerprint', flat=True)[0]:016x}"
    if part == "slug":
        return Tenant.objects.get(slug="crowd-0007").slug
    return {"name": "crowd-1", "page": "overview", "public_id": "none"}.get(part, 1)


def visit_all(site: Site, visits: int) -> list[Visited]:
    """Visit each page so often, after one visit that is not counted."""
    found = []
    pages = addresses()
    for done, (name, path) in enumerate(pages.items(), 1):
        first = site.visit(path)
        if first.status == 405:  # noqa: PLR2004 - it is no page: it takes forms alone
            continue
        found.append(_visited(site, name, path, visits))
        progress("pages", done, len(pages))
    return found


def _visited(site: Site, name: str, path: str, visits: int) -> Visited:
    cpu = Cpu({"web": [site.pid]})
    answers = [site.visit(path) for _ in range(visits)]
    walls, spent = [answer.wall_ms for answer in answers], cpu.spent_s()
    return Visited(
        name,
        answers[-1].status,
        quantile(walls, 0.5),
        quantile(walls, 0.95),
        1000 * spent["web"] / visits,
        1000 * spent.get("database", 0.0) / visits,
        answers[-1].sent_bytes,
    )
