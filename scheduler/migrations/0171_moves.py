"""A move of tasks from one state to another is one row of changes, not one that takes away and one or two that add.

`task_change` shows the changes as the single counters that the readers add up.
"""

from __future__ import annotations

from django.db import migrations, models

MOVES = """
CREATE OR REPLACE FUNCTION count_updated_tasks() RETURNS trigger LANGUAGE plpgsql
-- The plan is kept for as long as the session is, and made for as few rows as the first statement changed.
SET enable_nestloop = off SET enable_mergejoin = off AS $$
DECLARE
    has_crossed boolean;
BEGIN
    WITH moved AS (
        INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n, came_from)
        SELECT a.pool_id, a.priority, a.tenant_id, a.demand_id, a.state, count(*),
               CASE WHEN (a.pool_id, a.priority, a.tenant_id, a.demand_id)
                       = (r.pool_id, r.priority, r.tenant_id, r.demand_id) THEN r.state END
        FROM added a JOIN removed r ON r.id = a.id
        WHERE (a.state, a.pool_id, a.priority, a.tenant_id, a.demand_id)
           <> (r.state, r.pool_id, r.priority, r.tenant_id, r.demand_id)
        GROUP BY 1, 2, 3, 4, 5, 7
        RETURNING came_from
    )
    SELECT bool_or(came_from IS NULL) INTO has_crossed FROM moved;
    IF has_crossed THEN
        -- Into another lane: what came to that one has left this one.
        INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
        SELECT r.pool_id, r.priority, r.tenant_id, r.demand_id, r.state, -count(*)
        FROM added a JOIN removed r ON r.id = a.id
        WHERE (a.pool_id, a.priority, a.tenant_id, a.demand_id) <> (r.pool_id, r.priority, r.tenant_id, r.demand_id)
        GROUP BY 1, 2, 3, 4, 5;
    END IF;
    RETURN NULL;
END $$;

CREATE VIEW task_change AS
SELECT pool_id, priority, tenant_id, demand_id, counter, n FROM task_delta
UNION ALL
SELECT pool_id, priority, tenant_id, demand_id, came_from, -n FROM task_delta WHERE came_from IS NOT NULL
UNION ALL
SELECT pool_id, priority, tenant_id, demand_id, 'started', n FROM task_delta
WHERE counter = 'running' AND came_from IS NOT NULL;
"""

SINGLES = """
DROP VIEW task_change;

CREATE OR REPLACE FUNCTION count_updated_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
    SELECT pool_id, priority, tenant_id, demand_id, counter, sum(n)
    FROM (
        SELECT pool_id, priority, tenant_id, demand_id, state AS counter, count(*) AS n
        FROM added GROUP BY 1, 2, 3, 4, 5
        UNION ALL
        SELECT pool_id, priority, tenant_id, demand_id, state, -count(*)
        FROM removed GROUP BY 1, 2, 3, 4, 5
    ) AS moves
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
    INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
    SELECT pool_id, priority, tenant_id, demand_id, 'started', count(*)
    FROM added WHERE state = 'running' GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0158_history")]

    operations = [
        migrations.AddField(
            model_name="taskdelta",
            name="came_from",
            field=models.CharField(max_length=13, null=True),
        ),
        migrations.RunSQL(MOVES, SINGLES),
    ]
