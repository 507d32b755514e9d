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
-- How many have not ended, and how late the dispatch is that will find the first of those that are due.
SELECT count(*)::int,
       count(*) FILTER (WHERE state = 'scheduled')::int,
       greatest(0.0, extract(epoch FROM clock_timestamp() - min(due_at) FILTER (WHERE state = 'scheduled')))::float8
  FROM task
 WHERE finished_at IS NULL;

-- name: forgo_disk
-- From the next connection on nothing in this database waits for the disk. For one that is dropped at the end.
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$;
