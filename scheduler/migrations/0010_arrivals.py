"""What the planner needs to know of new work without looking through all lanes: arrivals, and when they are folded."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0007_forecast")]

    operations = [
        # Called once here: the first call leaves the value that a new sequence shows already, and would tell nobody.
        migrations.RunSQL(
            "CREATE SEQUENCE task_fold_seq; SELECT nextval('task_fold_seq')", "DROP SEQUENCE task_fold_seq"
        ),
        migrations.AddIndex(
            model_name="taskdelta",
            index=models.Index(
                condition=models.Q(("counter", "ready"), ("n__gt", 0)),
                fields=["pool_id", "priority", "tenant_id", "demand_id"],
                name="task_delta_arrivals",
            ),
        ),
    ]
