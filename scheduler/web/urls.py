"""The URL table of the console, mounted at ``/ops/``."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from scheduler.web import live_poll, look, pages, pool_actions, task_page, tenant_page, tenants_page
from scheduler.web.sign_in import SignIn

app_name = "ops"

urlpatterns = [
    path("", pages.overview, name="overview"),
    path("pools/", pages.pools, name="pools"),
    path("pools/<str:name>/", pages.pool, name="pool"),
    path("pools/<str:name>/pause/", pool_actions.pause, name="pool-pause"),
    path("pools/<str:name>/resume/", pool_actions.resume, name="pool-resume"),
    path("tasks/<int:task_id>/", task_page.task, name="task"),
    path("resources/", pages.resources, name="resources"),
    path("tenants/", tenants_page.tenants, name="tenants"),
    path("tenants/<str:slug>/", tenant_page.tenant, name="tenant"),
    path("look/", look.change_look, name="look"),
    path("sign-in/", SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("_live/<slug:page>/", live_poll.poll, name="poll"),
]
