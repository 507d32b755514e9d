"""The URL table: where each edge of the product is mounted."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

handler500 = "scheduler.web.broken.broken"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(url="/ops/"), name="home"),
    path("ops/", include("scheduler.web.urls")),
    path("", include("scheduler.api.urls")),
    path("admin/", admin.site.urls),
]
