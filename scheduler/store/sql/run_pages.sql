-- name: list_older
-- Runs in these states below an id, newest first. Each state is a walk of its own down an index.
SELECT r.id
FROM unnest(%(states)s::text[]) AS s(state)
CROSS JOIN LATERAL (
    SELECT n.id FROM run n
    WHERE n.state = s.state AND n.id < %(below)s AND n.id > %(above)s
    ORDER BY n.id DESC LIMIT %(rows_max)s
) r
ORDER BY r.id DESC
LIMIT %(rows_max)s;

-- name: list_older_of_tenant
-- The same of one tenant.
SELECT r.id
FROM unnest(%(states)s::text[]) AS s(state)
CROSS JOIN LATERAL (
    SELECT n.id FROM run n
    WHERE n.tenant_id = %(tenant)s AND n.state = s.state AND n.id < %(below)s AND n.id > %(above)s
    ORDER BY n.id DESC LIMIT %(rows_max)s
) r
ORDER BY r.id DESC
LIMIT %(rows_max)s;

-- name: list_newer
-- The same above an id, oldest first.
SELECT r.id
FROM unnest(%(states)s::text[]) AS s(state)
CROSS JOIN LATERAL (
    SELECT n.id FROM run n
    WHERE n.state = s.state AND n.id > %(above)s AND n.id < %(below)s
    ORDER BY n.id LIMIT %(rows_max)s
) r
ORDER BY r.id
LIMIT %(rows_max)s;

-- name: list_newer_of_tenant
-- The same of one tenant.
SELECT r.id
FROM unnest(%(states)s::text[]) AS s(state)
CROSS JOIN LATERAL (
    SELECT n.id FROM run n
    WHERE n.tenant_id = %(tenant)s AND n.state = s.state AND n.id > %(above)s AND n.id < %(below)s
    ORDER BY n.id LIMIT %(rows_max)s
) r
ORDER BY r.id
LIMIT %(rows_max)s;

-- name: newest_before
-- The newest run that is older than so many seconds.
SELECT id FROM run WHERE created_at < clock_timestamp() - make_interval(secs => %(age_s)s)
ORDER BY created_at DESC LIMIT 1;

-- name: run_progress
-- Of these runs: steps that run now, steps that are yet to start, and those of them that are ready.
SELECT r.id, coalesce(b.running, 0), coalesce(o.open, 0), coalesce(o.ready, 0)
FROM unnest(%(runs)s::bigint[]) AS r(id)
LEFT JOIN (
    SELECT d.run_id, count(*) AS running FROM lease l JOIN demand d ON d.id = l.demand_id
    WHERE l.demand_id < 0 AND d.run_id = ANY(%(runs)s::bigint[]) GROUP BY 1
) b ON b.run_id = r.id
LEFT JOIN (
    SELECT d.run_id, count(*) AS open, count(*) FILTER (WHERE t.state = 'ready') AS ready
    FROM demand d JOIN task t ON t.demand_id = d.id
    WHERE d.run_id = ANY(%(runs)s::bigint[]) AND t.demand_id < 0
      AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying')
    GROUP BY 1
) o ON o.run_id = r.id;

-- name: run_figures
-- How all runs stand. Nothing is counted further than `count_max`.
WITH active AS (SELECT id FROM run WHERE state = 'active' LIMIT %(count_max)s)
SELECT (SELECT count(*) FROM active),
       (SELECT count(*) FROM (SELECT FROM run WHERE state = 'paused' LIMIT %(count_max)s) p),
       (SELECT count(*) FROM active r WHERE EXISTS (SELECT FROM run_alert a WHERE a.run_id = r.id)),
       (SELECT count(*) FROM (SELECT FROM run WHERE state = 'killed' AND finished_at IS NOT NULL
                                AND finished_at > clock_timestamp() - make_interval(secs => %(lately_s)s)
                              LIMIT %(count_max)s) k),
       (SELECT count(*) FROM lease WHERE demand_id < 0),
       (SELECT count(*) FROM (SELECT FROM task WHERE demand_id < 0
                                AND state IN ('blocked', 'scheduled', 'ready', 'retrying')
                              LIMIT %(count_max)s) w),
       extract(epoch FROM clock_timestamp())::float8;

-- name: run_timeline
-- The newest steps of a run, oldest first: where each stands, whether it writes, and the span of its attempts.
SELECT t.id, t.state, d.writes, extract(epoch FROM coalesce(a.began, l.started_at))::float8,
       extract(epoch FROM CASE WHEN l.task_id IS NULL THEN a.ended END)::float8
FROM (SELECT task_id FROM task_payload WHERE run_id = %(run)s::bigint ORDER BY task_id DESC LIMIT %(steps_max)s) p
JOIN task t ON t.id = p.task_id
JOIN demand d ON d.id = t.demand_id
LEFT JOIN LATERAL (SELECT min(n.started_at) AS began, max(n.finished_at) AS ended
                   FROM attempt n WHERE n.task_id = t.id) a ON true
LEFT JOIN lease l ON l.task_id = t.id
ORDER BY t.id;

-- name: run_edges
-- Which of these steps come after which.
SELECT child_id, parent_id FROM task_edge
WHERE child_id = ANY(%(steps)s::bigint[]) AND parent_id IS NOT NULL
ORDER BY child_id, place
LIMIT %(edges_max)s;

-- name: run_steps
-- Steps of a run above an id, in the order they came, with what they cost.
SELECT t.id, t.kind, t.key, q.name, t.state, d.writes, t.attempts, extract(epoch FROM t.created_at)::float8,
       extract(epoch FROM t.ready_at)::float8, extract(epoch FROM l.started_at)::float8,
       (SELECT sum(e.tenant_charge_nano)::bigint FROM attempt a JOIN ledger_entry e ON e.lease_id = a.lease_id
        WHERE a.task_id = t.id)
FROM (SELECT task_id FROM task_payload WHERE run_id = %(run)s::bigint AND task_id > %(after)s
      ORDER BY task_id LIMIT %(rows_max)s) p
JOIN task t ON t.id = p.task_id
JOIN demand d ON d.id = t.demand_id
JOIN pool q ON q.id = t.pool_id
LEFT JOIN lease l ON l.task_id = t.id
ORDER BY t.id;

-- name: run_attempts
-- The newest attempts of each of these steps.
SELECT a.task_id, extract(epoch FROM a.started_at)::float8, extract(epoch FROM a.finished_at)::float8, a.outcome
FROM unnest(%(steps)s::bigint[]) AS s(id)
CROSS JOIN LATERAL (SELECT n.* FROM attempt n WHERE n.task_id = s.id ORDER BY n.lease_id DESC LIMIT %(each_max)s) a
ORDER BY a.task_id, a.lease_id;

-- name: run_cost_by_model
-- What the steps of a run cost, by model; NULL is the time of workers. Wasted is what paid for failed attempts.
SELECT e.model, count(DISTINCT e.lease_id), sum(e.tenant_charge_nano)::bigint,
       coalesce(sum(e.tenant_charge_nano) FILTER (WHERE e.outcome = 'waste'), 0)::bigint
FROM task_payload p
JOIN attempt a ON a.task_id = p.task_id
JOIN ledger_entry e ON e.lease_id = a.lease_id
WHERE p.run_id = %(run)s::bigint
GROUP BY 1
ORDER BY 3 DESC, 1
LIMIT %(rows_max)s;

-- name: waits_longest
-- The step of a run that has been ready for longest.
SELECT t.id FROM demand d JOIN task t ON t.demand_id = d.id
WHERE d.run_id = %(run)s AND t.demand_id < 0 AND t.state = 'ready'
ORDER BY t.ready_at, t.id LIMIT 1;

-- name: unfinished_claims
-- Effects of a run that were claimed and are not known to have been made.
SELECT count(*) FROM receipt WHERE run_id = %(run)s AND state = 'claimed';
