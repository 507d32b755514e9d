"""Every action of the console has a permission of its own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0016_forgetting"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="pool",
            options={
                "permissions": [
                    ("view_console", "May see the operator console"),
                    ("operate_pool", "May pause, drain, resume and resize pools"),
                    ("view_payload", "May see what tasks carry and return"),
                    ("edit_resource_limit", "May edit, override, pause and resume shared limits"),
                    ("operate_task", "May cancel, replay and discard tasks, one or many"),
                    ("operate_run", "May pause, resume and kill runs"),
                    ("edit_schedule", "May create, edit, pause and remove schedules"),
                    ("operate_worker", "May drain workers"),
                    ("edit_tenant", "May edit weights and quotas of tenants, and suspend them"),
                    ("edit_budget", "May edit budgets and prices"),
                    ("top_up_budget", "May raise a budget for a while"),
                    ("edit_access", "May create and revoke tokens, webhooks and alert targets"),
                    ("view_audit", "May read and export the audit"),
                ]
            },
        ),
    ]
