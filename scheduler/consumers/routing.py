"""The tables of websocket routes: sockets of the console, and those that services open with a token."""

from __future__ import annotations

from django.urls import path

from scheduler.consumers.feed import FeedConsumer
from scheduler.consumers.ops import ops_socket
from scheduler.consumers.worker import worker_socket

websocket_urlpatterns = [
    path("ws/ops/", ops_socket),  # type: ignore[arg-type]  # Django types only HTTP views
]
service_urlpatterns = [
    path("ws/feed/", FeedConsumer.as_asgi()),  # type: ignore[arg-type]  # as above
    path("ws/worker/", worker_socket),  # type: ignore[arg-type]  # as above
]


def is_for_services(request_path: str) -> bool:
    """Whether the socket of this path is opened with a token, and not from a page of ours."""
    return any(f"/{route.pattern}" == request_path for route in service_urlpatterns)
