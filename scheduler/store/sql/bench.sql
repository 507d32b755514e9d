-- name: empty_tables
TRUNCATE task, task_payload, task_result, attempt, lease, task_count, task_delta, worker, fair_counter, fair_clock,
         class_credit, snapshot, resource_state;

-- name: settle_down
-- Bring the statistics up to date, as they would be in a database that has lived for a minute.
VACUUM (ANALYZE) task, task_payload;
