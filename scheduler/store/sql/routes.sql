-- name: read_routes
SELECT id, capability, options::text, degraded_model, version FROM route
WHERE %(capabilities)s::text[] IS NULL OR capability = ANY(%(capabilities)s::text[])
ORDER BY capability;

-- name: add_route
-- Zero rows: there is one for this capability.
INSERT INTO route (capability, options, degraded_model)
VALUES (%(capability)s, %(options)s::jsonb, %(degraded_model)s)
ON CONFLICT (capability) DO NOTHING
RETURNING id;

-- name: edit_route
-- Zero rows: the version moved on, or there is no such route.
UPDATE route SET options = %(options)s::jsonb, degraded_model = %(degraded_model)s, version = version + 1
WHERE capability = %(capability)s AND version = %(version)s
RETURNING version;

-- name: keep_routing
-- How new tasks were routed.
UPDATE task_payload p SET routing = n.routing
FROM unnest(%(tasks)s::bigint[], %(routings)s::jsonb[]) AS n(task_id, routing)
WHERE p.task_id = n.task_id;

-- name: count_routed
-- Ready tasks by route and place in it.
SELECT (p.routing->>'route')::bigint, (p.routing->>'choice')::integer, count(*)
FROM task t JOIN task_payload p ON p.task_id = t.id
WHERE t.state = 'ready' AND t.links >= 8
GROUP BY 1, 2;

-- name: read_routed
-- Ready tasks that may have to be routed anew: those that are not where tasks of their route without a deadline go now,
-- and those with a deadline, the most urgent first.
SELECT t.id, t.demand_id, t.latest_start_s, t.expected_s, p.routing::text, d.priced, d.labels,
       d.run_id, d.writes
FROM (SELECT id, demand_id, extract(epoch FROM latest_start)::float8 AS latest_start_s, expected_s FROM task
      WHERE state = 'ready' AND links >= 8) t
JOIN task_payload p ON p.task_id = t.id
JOIN demand d ON d.id = t.demand_id
JOIN unnest(%(routes)s::bigint[], %(targets)s::integer[]) AS n(route_id, target)
  ON n.route_id = (p.routing->>'route')::bigint
WHERE t.latest_start_s IS NOT NULL OR (p.routing->>'choice')::integer <> n.target
ORDER BY t.latest_start_s, t.id
LIMIT %(tasks_max)s;

-- name: move_routed
-- Let ready tasks need what another model needs. Only under the turn to plan: no plan may hold them to the old needs.
WITH moved AS (
    UPDATE task t SET demand_id = n.demand_id, amounts = n.amounts::float8[]
    FROM unnest(%(tasks)s::bigint[], %(demands)s::bigint[], %(amounts)s::text[]) AS n(task_id, demand_id, amounts)
    WHERE t.id = n.task_id AND t.state || '' = 'ready'
    RETURNING t.id
)
UPDATE task_payload p SET routing = n.routing
FROM unnest(%(tasks)s::bigint[], %(routings)s::jsonb[]) AS n(task_id, routing)
JOIN moved m ON m.id = n.task_id
WHERE p.task_id = n.task_id;
