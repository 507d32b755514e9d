"""Rows and a snapshot in which every text that somebody outside may choose tries to become markup."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, Final

from django.apps import apps
from django.db import DatabaseError, models, transaction
from django.utils import timezone

from scheduler.models import DeadGroup, Operation, Pool, Price, TopUp, Webhook, Worker
from scheduler.policy.runs import KillScope
from scheduler.policy.types import PoolId, TaskId, TenantId
from scheduler.services.changes import Author, record
from scheduler.services.dead import fold_dead
from scheduler.services.kill import kill
from scheduler.services.saved_filters import save_filter
from scheduler.services.tokens import create_token
from scheduler.services.webhooks import add_webhook
from tests.live import sample
from tests.support.books import USD, make_budget, make_entry
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks
from tests.web.runs_cast import busy_run, make_schedule, take_time

TEXT: Final = "\u202e<evil a>' evil='\" evil=\"evil {{7*7}}{% evil %}"
"""Leaves an element, an attribute in either quotes, and a template's text; and turns the direction of what follows."""
CHOSEN: Final = frozenset(
    [
        "name",
        "key",
        "kind",
        "reason",
        "paused_by",
        "pause_reason",
        "actor",
        "message",
        "fault",
        "error",
        "model",
        "provider",
        "exception",
        "traceback",
        "step",
        "degraded_model",
        "fingerprint",
        "slug",
        "filter",
    ]
)
"""Columns whose text somebody chooses; of others of these names, those stay as they are that must be one of a few."""
SPOKEN: Final = CHOSEN | frozenset(["id", "text", "by", "says", "tenant", "resource", "pool", "pools"])
"""The same in a snapshot."""
WRITTEN: Final = {"payload", "goal", "result", "tags", "checkpoint", "receipt", "config"}
"""Columns of free JSON."""


class Markup(HTMLParser):
    """Finds what of the hostile text became markup, and addresses that would run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            runs = name.startswith("on") or (value or "").strip().lower().startswith("javascript:")
            if "evil" in name or runs:
                self.faults.append(f"<{tag} {name}={value!r}>")
        if tag == "evil" or (tag in {"script", "style"} and not dict(attrs).get("src")):
            self.faults.append(f"<{tag}>")


def faults_in(html: str) -> list[str]:
    """What of the hostile text is more than text in this page."""
    return [*Markup(html).faults, *(["a template was drawn"] if "evil 49" in html else [])]


def body() -> dict[str, Any]:
    """A snapshot in which everything chosen is hostile."""

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoil(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [spoil(inner, key) for inner in value]
        return TEXT if isinstance(value, str) and key in SPOKEN and value != "token_bucket" else value

    spoilt: dict[str, Any] = spoil(sample.body())
    for resource in spoilt["resources"]:
        resource["kind"] = "token_bucket"
    return spoilt


def spoil_rows() -> None:
    """Every chosen text of every row is hostile from now on, as far as the tables themselves allow it."""
    for model in apps.get_app_config("scheduler").get_models():
        if model._meta.proxy:
            continue
        for field in model._meta.local_concrete_fields:
            if field.primary_key:
                continue
            if isinstance(field, models.CharField | models.TextField) and field.name in CHOSEN and not field.choices:
                _spoil(model, field.name, TEXT)
            elif isinstance(field, models.JSONField) and field.name in WRITTEN:
                _spoil(model, field.name, {TEXT: TEXT})
    Worker.objects.update(labels=[TEXT])


def _spoil(model: type[models.Model], field: str, value: object) -> None:
    """Where only one row may have it, one has."""
    rows = model._base_manager.all()
    first = rows.order_by("pk").first()
    if first is None:
        return
    for some in (rows, rows.filter(pk=first.pk)):
        try:
            with transaction.atomic():
                some.update(**{field: value})
        except DatabaseError:
            continue
        return


def cast() -> dict[str, object]:
    """Something of everything, all hostile; the parts of the addresses of what the pages are about."""
    tenant = make_tenant("acme", monthly_budget_nano=USD)
    pool = PoolId(Pool.objects.create(name="llm", executor="llm", max_attempts=1).pk)
    make_bucket("openai", rate=50.0, burst=100.0)
    schedule = make_schedule(tenant, "nightly")
    run = busy_run(tenant, pool)
    task = _work(tenant)
    budget = make_budget(tenant, limit=100 * USD, spent=USD)
    make_entry(tenant, pool, USD)
    Price.objects.create(model="m-1", input_nano=USD, output_nano=USD, valid_from=timezone.now())
    soon = timezone.now() + timedelta(hours=1)
    top_up = TopUp.objects.create(
        budget_id=budget.pk, tenant_id=tenant, amount_nano=USD, ends_at=soon, actor="a", reason="r"
    )
    token = create_token(scopes=["read"], tenant="acme", name="n", actor="a", reason="r")
    hook = add_webhook(tenant, "https://example.org/", ("task.failed",), Author("a", "ui", "r")).webhook
    save_filter("n", "state:dead", None, Author("a", "ui", "r"))
    kill(KillScope.POOL, "llm", actor="a", reason="r")
    record(Author(TEXT, "ui", TEXT), TEXT, TEXT, before={TEXT: TEXT, "a": 1}, after={TEXT: [TEXT], "a": TEXT})
    now = timezone.now()
    operation = Operation.objects.create(
        kind="replay", state="done", as_of=now, actor="a", source="ui", reason="r", rate=1.0, total=0, starts_at=now
    )
    Pool.objects.update(paused_at=now)
    take_time()
    spoil_rows()
    Webhook.objects.update(url="javascript:evil")
    group = DeadGroup.objects.order_by("pk").first()
    assert group is not None
    return {
        "name": TEXT,
        "slug": TEXT,
        "task_id": task,
        "run_id": run,
        "schedule_id": schedule,
        "operation_id": operation.pk,
        "top_up_id": top_up.pk,
        "worker_id": Worker.objects.order_by("started_at")[0].pk,
        "fingerprint": f"{group.pk % 2**64:016x}",
        "public_id": token.public_id,
        "webhook_id": hook.id,
        "filter_id": 1,
        "event_id": _newest_event(),
    }


def _work(tenant: TenantId) -> TaskId:
    """A task that died, and one that waits."""
    pool = make_pool("eval", max_attempts=1)
    submit_tasks(tenant, 2, pool="eval", kind="k")
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    worker.fail([leased])
    fold_dead()
    take_time()
    return leased.task


def _newest_event() -> int:
    model = apps.get_model("scheduler", "AuditEvent")
    return int(model._base_manager.order_by("-id").values_list("id", flat=True)[0])
