"""Storage settings of the hot tables, and the triggers that keep `task_delta` exact.

The triggers count, they decide nothing: every path that changes a task, psql included, is counted by the same code, so
the counts cannot drift. They run once per statement. `started` counts every move into `running`.
"""

from django.db import migrations

STORAGE = """
ALTER TABLE task SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE lease SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE task_delta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE task_count SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE resource_state SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE fair_counter SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE fair_clock SET (fillfactor = 40);
ALTER TABLE class_credit SET (fillfactor = 40);
ALTER TABLE worker SET (fillfactor = 60);
ALTER TABLE leader SET (fillfactor = 40);
ALTER TABLE snapshot SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
"""

TRIGGERS = """
CREATE FUNCTION count_inserted_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
    SELECT pool_id, priority, tenant_id, demand_id, state, count(*) FROM added GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE FUNCTION count_updated_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE FUNCTION count_deleted_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
    SELECT pool_id, priority, tenant_id, demand_id, state, -count(*) FROM removed GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE TRIGGER task_inserted AFTER INSERT ON task REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_tasks();
CREATE TRIGGER task_updated AFTER UPDATE ON task REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_updated_tasks();
CREATE TRIGGER task_deleted AFTER DELETE ON task REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_tasks();
"""

UNDO = """
DROP TRIGGER task_inserted ON task;
DROP TRIGGER task_updated ON task;
DROP TRIGGER task_deleted ON task;
DROP FUNCTION count_inserted_tasks();
DROP FUNCTION count_updated_tasks();
DROP FUNCTION count_deleted_tasks();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0001_initial")]

    operations = [
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
