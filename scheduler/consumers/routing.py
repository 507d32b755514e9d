"""The table of websocket routes."""

from __future__ import annotations

from django.urls import path

from scheduler.consumers.ops import OpsConsumer

websocket_urlpatterns = [
    path("ws/ops/", OpsConsumer.as_asgi()),  # type: ignore[arg-type]  # Django types only HTTP views
]
