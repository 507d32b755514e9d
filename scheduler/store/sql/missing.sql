-- name: end_overdue
-- End waiting tasks that did not start in time. A fixed start that began in time and is tried again is not late: from
-- then on only its expiry counts. Blocked ones are left to `end_overdue_blocked`, which takes its locks in another order.
-- A row for each task that ended.
WITH overdue AS (
    SELECT t.id, f.task_id IS NOT NULL AND (f.expires_at > clock_timestamp()) IS NOT FALSE AS by_tolerance,
           f.on_miss, f.expires_at, t.attempts > 0 AS begun
    FROM task t LEFT JOIN fixed_start f ON f.task_id = t.id
    WHERE t.state IN ('scheduled', 'ready', 'retrying') AND t.start_by IS NOT NULL AND t.start_by <= statement_timestamp()
    ORDER BY t.start_by, t.id
    LIMIT %(tasks_max)s
    FOR UPDATE OF t SKIP LOCKED
),
kept AS (
    UPDATE task t SET start_by = o.expires_at FROM overdue o WHERE t.id = o.id AND o.by_tolerance AND o.begun
)
UPDATE task t
SET state = CASE WHEN o.by_tolerance AND o.on_miss = 'fail' THEN 'failed' ELSE 'missed' END,
    due_at = NULL, finished_at = clock_timestamp()
FROM overdue o
WHERE t.id = o.id AND NOT (o.by_tolerance AND o.begun)
RETURNING t.id, t.state, t.links;

-- name: overdue_blocked
SELECT id FROM task
WHERE state = 'blocked' AND start_by IS NOT NULL AND start_by <= statement_timestamp()
ORDER BY start_by, id
LIMIT %(tasks_max)s;

-- name: end_overdue_blocked
-- The same for one that waits for other tasks. Zero rows: it was let go meanwhile.
UPDATE task t
SET state = CASE WHEN f.on_miss = 'fail' AND (f.expires_at > clock_timestamp()) IS NOT FALSE THEN 'failed'
                 ELSE 'missed' END,
    due_at = NULL, finished_at = clock_timestamp()
FROM (SELECT %(task)s::bigint AS id) one LEFT JOIN fixed_start f ON f.task_id = one.id
WHERE t.id = one.id AND t.state = 'blocked' AND t.start_by <= statement_timestamp()
RETURNING t.id, t.state, t.links;
