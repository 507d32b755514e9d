"""The ASGI application: HTTP through Django, websockets through channels behind an origin check."""

import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cronoq_app.settings")

http = get_asgi_application()

from django.conf import settings  # noqa: E402  # after the registry is ready

from cronoq_app.leaving import leave_when_told  # noqa: E402  # as below
from scheduler.api.asgi import ApiHandler, is_for_api  # noqa: E402  # as below
from scheduler.consumers.routing import (  # noqa: E402  # it knows models, which need the registry
    is_for_services,
    service_urlpatterns,
    websocket_urlpatterns,
)
from scheduler.interpreter import settle_in  # noqa: E402  # as below

# A browser sends its origin, and only ours may connect; a missing one is refused too.
routes = URLRouter(websocket_urlpatterns)  # type: ignore[arg-type]  # the types know channels' own routes only
pages = OriginValidator(routes, settings.CSRF_TRUSTED_ORIGINS)
# A service has a token and no origin; a page of another origin cannot send one along.
services = URLRouter(service_urlpatterns)  # type: ignore[arg-type]  # as above
api = ApiHandler()
leave_when_told()


async def web(scope: Any, receive: Any, send: Any) -> None:
    """The API goes without the console's middleware."""
    await (api if is_for_api(scope["path"]) else http)(scope, receive, send)


async def sockets(scope: Any, receive: Any, send: Any) -> None:
    """Sockets of pages answer to their origin, those of services to a token."""
    await (services if is_for_services(scope["path"]) else pages)(scope, receive, send)


application = ProtocolTypeRouter({"http": web, "websocket": sockets})


settle_in()
