-- name: take_turns
-- One submission after the other near these bounds, in the order given, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended(turn, 25457)),
       set_config('idle_in_transaction_session_timeout', '5s', true)
FROM unnest(%(turns)s::text[]) AS turn;

-- name: read_depths
-- What waits now, exactly, as far as it is committed. For what follows in this transaction: see `lock_dispatch`.
SELECT scope, scope_id, sum(n)::bigint,
       (SELECT set_config('enable_seqscan', 'off', true) || set_config('plan_cache_mode', 'force_generic_plan', true)
               || set_config('jit', 'off', true))
FROM (
    SELECT scope, scope_id, waiting AS n FROM waiting_depth
    WHERE (scope = 'pool' AND scope_id = ANY(%(pools)s)) OR (scope = 'tenant' AND scope_id = ANY(%(tenants)s))
    UNION ALL
    SELECT 'pool', pool_id, n FROM task_change
    WHERE pool_id = ANY(%(pools)s) AND counter IN ('blocked', 'scheduled', 'ready', 'retrying')
    UNION ALL
    SELECT 'tenant', tenant_id, n FROM task_change
    WHERE tenant_id = ANY(%(tenants)s) AND counter IN ('blocked', 'scheduled', 'ready', 'retrying')
) AS parts
GROUP BY 1, 2;

-- name: lock_newest_of_lowest
-- Ready tasks of the lowest class that has any, then of the next, newest first, but none of class `least` or above. Lane by
-- lane, each read from its end: the cost grows with lanes, never with tasks. Those that others hold are passed over.
WITH RECURSIVE hop AS (
    (SELECT t.priority, t.tenant_id, t.demand_id FROM task t
     WHERE t.state = 'ready' AND t.pool_id = %(pool)s
     ORDER BY t.priority DESC, t.tenant_id DESC, t.demand_id DESC LIMIT 1)
    UNION ALL
    SELECT n.priority, n.tenant_id, n.demand_id
    FROM hop h CROSS JOIN LATERAL (
        SELECT t.priority, t.tenant_id, t.demand_id FROM task t
        WHERE t.state = 'ready' AND t.pool_id = %(pool)s
          AND (t.priority, t.tenant_id, t.demand_id) < (h.priority, h.tenant_id, h.demand_id)
        ORDER BY t.priority DESC, t.tenant_id DESC, t.demand_id DESC LIMIT 1
    ) n
    WHERE n.priority > %(least)s
),
tail AS (
    SELECT t.id, t.priority FROM hop h CROSS JOIN LATERAL (
        SELECT t.id, t.priority, t.ready_at FROM task t
        WHERE t.state = 'ready' AND t.pool_id = %(pool)s AND t.priority = h.priority AND t.tenant_id = h.tenant_id
          AND t.demand_id = h.demand_id
        ORDER BY t.ready_at DESC, t.id DESC LIMIT %(tasks_max)s
    ) t
    WHERE h.priority > %(least)s
    ORDER BY t.priority DESC, t.ready_at DESC, t.id DESC
    LIMIT %(tasks_max)s
)
SELECT t.id, t.priority FROM task t JOIN tail ON tail.id = t.id
WHERE t.state || '' = 'ready'
ORDER BY t.priority DESC, t.ready_at DESC, t.id DESC
FOR NO KEY UPDATE OF t SKIP LOCKED;

-- name: lock_oldest_low
-- Ready tasks of class low, oldest first, found in the same way from the heads of their lanes.
WITH RECURSIVE hop AS (
    (SELECT t.tenant_id, t.demand_id FROM task t
     WHERE t.state = 'ready' AND t.pool_id = %(pool)s AND t.priority = %(low)s
     ORDER BY t.tenant_id, t.demand_id LIMIT 1)
    UNION ALL
    SELECT n.tenant_id, n.demand_id
    FROM hop h CROSS JOIN LATERAL (
        SELECT t.tenant_id, t.demand_id FROM task t
        WHERE t.state = 'ready' AND t.pool_id = %(pool)s AND t.priority = %(low)s
          AND (t.tenant_id, t.demand_id) > (h.tenant_id, h.demand_id)
        ORDER BY t.tenant_id, t.demand_id LIMIT 1
    ) n
),
head AS (
    SELECT t.id FROM hop h CROSS JOIN LATERAL (
        SELECT t.id, t.ready_at FROM task t
        WHERE t.state = 'ready' AND t.pool_id = %(pool)s AND t.priority = %(low)s AND t.tenant_id = h.tenant_id
          AND t.demand_id = h.demand_id
        ORDER BY t.ready_at, t.id LIMIT %(tasks_max)s
    ) t
    ORDER BY t.ready_at, t.id
    LIMIT %(tasks_max)s
)
SELECT t.id, t.priority FROM task t JOIN head ON head.id = t.id
WHERE t.state || '' = 'ready'
ORDER BY t.ready_at, t.id
FOR NO KEY UPDATE OF t SKIP LOCKED;

-- name: shed_tasks
-- End ready tasks, locked before, to make room for others.
UPDATE task SET state = 'shed', finished_at = clock_timestamp()
WHERE id = ANY(%(tasks)s) AND state || '' = 'ready'
RETURNING id, links;

-- name: read_pool_states
-- The overload state of every pool that has one or has objectives.
SELECT p.id, p.slo::text, p.paused_at IS NOT NULL, p.allow_degraded, s.level, extract(epoch FROM s.level_since)::float8,
       extract(epoch FROM s.above_since)::float8, extract(epoch FROM s.calm_since)::float8,
       extract(epoch FROM s.seen_at)::float8, s.predicted_s, coalesce(s.started_per_s, 0)
FROM pool p LEFT JOIN pool_state s ON s.pool_id = p.id
ORDER BY p.id;

-- name: write_pool_states
INSERT INTO pool_state AS s (pool_id, level, level_since, above_since, calm_since, seen_at, degrades, predicted_s,
                             started_per_s)
SELECT n.pool_id, n.level, to_timestamp(n.level_since), to_timestamp(n.above_since), to_timestamp(n.calm_since),
       to_timestamp(n.seen_at), n.degrades, n.predicted_s, n.started_per_s
FROM unnest(%(pools)s::bigint[], %(levels)s::smallint[], %(since)s::float8[], %(above)s::float8[], %(calm)s::float8[],
            %(seen)s::float8[], %(degrades)s::boolean[], %(predicted)s::float8[], %(started)s::float8[])
     AS n(pool_id, level, level_since, above_since, calm_since, seen_at, degrades, predicted_s, started_per_s)
JOIN pool p ON p.id = n.pool_id
ON CONFLICT (pool_id) DO UPDATE
SET level = excluded.level, level_since = excluded.level_since, above_since = excluded.above_since,
    calm_since = excluded.calm_since, seen_at = excluded.seen_at, degrades = excluded.degrades,
    predicted_s = excluded.predicted_s, started_per_s = excluded.started_per_s;
