"""Payloads are shown to those who may see them."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0008_autoscale"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="pool",
            options={
                "permissions": [
                    ("view_console", "May see the operator console"),
                    ("operate_pool", "May pause and resume pools"),
                    ("view_payload", "May see what tasks carry and return"),
                    ("edit_resource_limit", "May edit the limits of shared resources"),
                ]
            },
        ),
    ]
