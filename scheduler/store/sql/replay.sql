-- name: attempted_tasks
-- For each task: when it could start and did, when its last attempt ended and how, and how many there were.
SELECT task_id,
       extract(epoch FROM min(ready_at))::float8 AS ready_at,
       extract(epoch FROM min(started_at))::float8 AS started_at,
       extract(epoch FROM max(finished_at))::float8 AS finished_at,
       bool_or(outcome = 'succeeded') AS succeeded,
       count(*)::int AS attempts
  FROM attempt
 WHERE outcome <> 'released'
 GROUP BY task_id;

-- name: open_tasks
SELECT count(*)::int FROM task WHERE finished_at IS NULL;
