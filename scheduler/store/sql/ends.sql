-- name: read_ends
-- How those of these tasks have ended that have, with their result or what the last attempt said. A row without a state:
-- the task is not kept any more.
SELECT w.id, t.state, r.result::text,
       CASE WHEN t.state <> 'succeeded'
            THEN (SELECT a.message FROM attempt a WHERE a.task_id = t.id ORDER BY a.lease_id DESC LIMIT 1) END
FROM unnest(%(tasks)s::bigint[]) AS w(id)
LEFT JOIN task t ON t.id = w.id
LEFT JOIN task_result r ON r.task_id = t.id AND t.state = 'succeeded'
WHERE t.id IS NULL OR t.state = ANY(%(ended)s::text[]);
