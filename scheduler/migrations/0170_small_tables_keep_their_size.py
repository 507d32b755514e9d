"""Small tables that turn over fast keep their pages: autovacuum waits up to five seconds to give some back."""

from django.db import migrations

TABLES = (
    "lease", "task_delta", "task_count", "resource_state", "fair_counter", "fair_clock", "class_credit", "leader",
    "waiting_depth", "event_fresh", "event_mark", "event_listener", "set_aside", "tenant_state", "run_use", "budget",
)  # fmt: skip


def _sql(setting: str) -> str:
    return "\n".join(f"ALTER TABLE {table} {setting};" for table in TABLES)


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0130_saved_filters"),
    ]

    operations = [
        migrations.RunSQL(_sql("SET (vacuum_truncate = false)"), _sql("RESET (vacuum_truncate)")),
    ]
