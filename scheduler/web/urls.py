"""The URL table of the console, mounted at ``/ops/``."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from scheduler.web import (
    audit_page,
    cost_page,
    kill_actions,
    kills_page,
    live_poll,
    look,
    pages,
    pool_actions,
    pool_edit,
    resource_actions,
    resource_page,
    run_actions,
    run_page,
    runs_page,
    slo_page,
    task_page,
    tasks_page,
    tenant_page,
    tenants_page,
)
from scheduler.web.sign_in import SignIn

app_name = "ops"

urlpatterns = [
    path("", pages.overview, name="overview"),
    path("pools/", pages.pools, name="pools"),
    path("pools/<str:name>/", pages.pool, name="pool"),
    path("pools/<str:name>/pause/", pool_actions.pause, name="pool-pause"),
    path("pools/<str:name>/resume/", pool_actions.resume, name="pool-resume"),
    path("pools/<str:name>/edit/", pool_edit.edit, name="pool-edit"),
    path("pools/<str:name>/preview/", pool_edit.preview, name="pool-preview"),
    path("pools/<str:name>/save/", pool_edit.save, name="pool-save"),
    path("tasks/", tasks_page.tasks, name="tasks"),
    path("tasks/<int:task_id>/", task_page.task, name="task"),
    path("slo/", slo_page.slo, name="slo"),
    path("resources/", pages.resources, name="resources"),
    path("resources/<str:name>/", resource_page.resource, name="resource"),
    path("resources/<str:name>/edit/", resource_page.edit, name="resource-edit"),
    path("resources/<str:name>/preview/", resource_actions.preview, name="resource-preview"),
    path("resources/<str:name>/save/", resource_actions.save, name="resource-save"),
    path("resources/<str:name>/lift/", resource_actions.lift, name="resource-lift"),
    path("resources/<str:name>/pause/", resource_actions.pause, name="resource-pause"),
    path("resources/<str:name>/resume/", resource_actions.resume, name="resource-resume"),
    path("resources/<str:name>/breaker/", resource_actions.close_breaker, name="resource-breaker"),
    path("resources/<str:name>/pace/", resource_actions.full_pace, name="resource-pace"),
    path("cost/", cost_page.cost, name="cost"),
    path("tenants/", tenants_page.tenants, name="tenants"),
    path("tenants/<str:slug>/", tenant_page.tenant, name="tenant"),
    path("runs/", runs_page.runs, name="runs"),
    path("runs/<int:run_id>/", run_page.run, name="run"),
    path("runs/<int:run_id>/pause/", run_actions.pause, name="run-pause"),
    path("runs/<int:run_id>/resume/", run_actions.resume, name="run-resume"),
    path("runs/<int:run_id>/kill/", run_page.kill, name="run-kill"),
    path("runs/<int:run_id>/kill/now/", run_actions.kill_now, name="run-kill-now"),
    path("runs/<int:run_id>/caps/", run_page.caps, name="run-caps"),
    path("runs/<int:run_id>/caps/save/", run_actions.caps_save, name="run-caps-save"),
    path("kills/", kills_page.kills, name="kills"),
    path("kills/confirm/", kills_page.kill_confirm, name="kill-confirm"),
    path("kills/raise/", kill_actions.kill_raise, name="kill-raise"),
    path("kills/lift/", kill_actions.kill_lift, name="kill-lift"),
    path("audit/", audit_page.audit, name="audit"),
    path("audit/<int:event_id>/", audit_page.entry, name="audit-entry"),
    path("audit/export.csv", audit_page.export, name="audit-export"),
    path("look/", look.change_look, name="look"),
    path("sign-in/", SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("_live/<slug:page>/", live_poll.poll, name="poll"),
]
