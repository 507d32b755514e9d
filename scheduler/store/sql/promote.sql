-- name: promote_due
-- Make due tasks ready. A retried task keeps the time at which it first became ready. The rows are locked in the state
-- that they were chosen for. The time is that of the statement, which an index scan may stop at.
WITH due AS (
    SELECT id FROM task
    WHERE state IN ('scheduled', 'retrying') AND due_at <= statement_timestamp()
    ORDER BY due_at, id
    LIMIT %(tasks_max)s
    FOR UPDATE SKIP LOCKED
)
UPDATE task t
SET state = 'ready', ready_at = coalesce(t.ready_at, t.due_at), due_at = NULL
FROM due WHERE t.id = due.id;
