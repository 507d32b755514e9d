"""The Django project: settings, URL table and ASGI application. Wiring only; no behaviour lives here."""
