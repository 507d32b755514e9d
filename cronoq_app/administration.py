"""Registers Django's administration with a site of ours: its own sign-in would know no throttle."""

from django.contrib.admin.apps import AdminConfig


class AdministrationConfig(AdminConfig):
    """Stock but for its site."""

    default = False
    default_site = "cronoq_app.administration_site.Site"
