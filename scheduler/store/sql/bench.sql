-- name: empty_tables
TRUNCATE task, task_payload, task_result, attempt, lease, task_count, task_delta, folded_arrivals, worker, fair_counter, fair_clock,
         class_credit, budget, ledger_entry, alert, set_aside, snapshot, resource_state, event_fresh, event, event_listener;

-- name: settle_down
-- Bring the statistics up to date, as they would be in a database that has lived for a minute.
VACUUM (ANALYZE) task, task_payload;

-- name: leave_in_bucket
WITH slow AS (UPDATE resource SET rate = 1e-9 WHERE name = %(name)s RETURNING id)
UPDATE resource_state s SET level = %(level)s, level_at = clock_timestamp() FROM slow WHERE s.resource_id = slow.id;

-- name: own_process
SELECT pg_backend_pid();
