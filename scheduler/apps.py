"""Registration of the product with Django."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """The one Django application of the project."""

    name = "scheduler"
    verbose_name = "Scheduler"
