-- name: have_scales
-- Every autoscaled pool has a row to lock.
INSERT INTO pool_scale (pool_id)
SELECT p.id FROM pool p
WHERE p.autoscale IS NOT NULL AND NOT EXISTS (SELECT FROM pool_scale s WHERE s.pool_id = p.id)
ON CONFLICT (pool_id) DO NOTHING;

-- name: lock_scaled_pools
-- Two leaders at once: the second leaves out what the first works on.
SELECT extract(epoch FROM clock_timestamp())::float8, p.id, p.name, p.executor, p.slots_min, p.slots_max, p.slots,
       p.duration_default_s, p.paused_at IS NOT NULL, p.slo::text, p.autoscale::text, s.desired, s.memory::text
FROM pool p JOIN pool_scale s ON s.pool_id = p.id
WHERE p.autoscale IS NOT NULL
ORDER BY p.id
FOR UPDATE OF s SKIP LOCKED;

-- name: read_work
-- Tasks that are ready now and attempts ever started, by class and demand: folded counts plus the changes since.
SELECT pool_id, priority, demand_id, counter, sum(n)::bigint
FROM (SELECT pool_id, priority, demand_id, counter, n FROM task_count
      WHERE pool_id = ANY(%(pools)s::bigint[]) AND counter IN ('ready', 'started')
      UNION ALL
      SELECT pool_id, priority, demand_id, counter, n FROM task_change
      WHERE pool_id = ANY(%(pools)s::bigint[]) AND counter IN ('ready', 'started')) AS counts
GROUP BY 1, 2, 3, 4;

-- name: read_in_flight
-- Live leases by demand: how many, their summed age in seconds, and what they take, summed by position.
SELECT pool_id, demand_id, count(*), coalesce(sum(extract(epoch FROM clock_timestamp() - started_at)), 0)::float8,
       array_remove(ARRAY[sum(amounts[1]), sum(amounts[2]), sum(amounts[3]), sum(amounts[4]),
                          sum(amounts[5]), sum(amounts[6]), sum(amounts[7]), sum(amounts[8])], NULL)
FROM lease WHERE pool_id = ANY(%(pools)s::bigint[])
GROUP BY 1, 2;

-- name: sample_amounts
-- What the first few waiting tasks of a few lanes of each demand ask for: for demands of which nothing runs.
SELECT w.pool_id, w.demand_id, t.amounts
FROM unnest(%(pools)s::bigint[], %(demands)s::bigint[]) AS w(pool_id, demand_id)
CROSS JOIN LATERAL (
    SELECT priority, tenant_id FROM task_count
    WHERE pool_id = w.pool_id AND demand_id = w.demand_id AND counter = 'ready' AND n > 0
    UNION
    SELECT priority, tenant_id FROM task_change
    WHERE pool_id = w.pool_id AND demand_id = w.demand_id AND counter = 'ready' AND n > 0
    LIMIT 5
) c
CROSS JOIN LATERAL (
    SELECT amounts FROM task t
    WHERE t.state = 'ready' AND t.pool_id = w.pool_id AND t.priority = c.priority AND t.tenant_id = c.tenant_id
      AND t.demand_id = w.demand_id
    ORDER BY t.ready_at, t.id
    LIMIT %(width)s
) t;

-- name: read_booked
-- What fixed starts that have yet to start have booked of each pool, from now to its horizon. One that is so late that
-- no slot is kept for it any more is waiting work like other.
SELECT p.pool_id, extract(epoch FROM f.starts_at)::float8, extract(epoch FROM f.ends_at)::float8
FROM unnest(%(pools)s::bigint[], %(horizons_s)s::float8[]) AS p(pool_id, horizon_s)
CROSS JOIN LATERAL (
    SELECT b.task_id, b.starts_at, b.ends_at FROM fixed_start b
    WHERE b.pool_id = p.pool_id AND b.starts_at > statement_timestamp() - make_interval(secs => %(held_after_s)s)
      AND b.starts_at <= statement_timestamp() + make_interval(secs => p.horizon_s)
    ORDER BY b.starts_at, b.task_id
    LIMIT %(rows_max)s
) f
JOIN task t ON t.id = f.task_id
WHERE t.state IN ('blocked', 'scheduled', 'ready') AND t.attempts = 0;

-- name: store_scales
-- Keep the decisions, and give local pools their slots, within bounds that may have been edited meanwhile. A pool that
-- is not autoscaled any more keeps what it has. Returns the pools that changed.
WITH decided AS (
    SELECT * FROM unnest(%(pools)s::bigint[], %(desired)s::int[], %(views)s::text[], %(memories)s::text[])
        AS d(pool_id, desired, view, memory)
),
kept AS (
    UPDATE pool_scale s
    SET desired = d.desired, view = d.view::jsonb, memory = d.memory::jsonb, as_of = clock_timestamp()
    FROM decided d WHERE s.pool_id = d.pool_id
)
UPDATE pool p
SET slots = least(greatest(d.desired, p.slots_min), p.slots_max)
FROM decided d
WHERE p.id = d.pool_id AND p.autoscale IS NOT NULL AND p.executor <> 'remote'
  AND p.slots <> least(greatest(d.desired, p.slots_min), p.slots_max)
RETURNING p.id;

-- name: read_scales
SELECT p.id, coalesce(s.desired, p.slots), extract(epoch FROM s.as_of)::float8, s.view::text
FROM pool p JOIN pool_scale s ON s.pool_id = p.id
WHERE p.autoscale IS NOT NULL AND s.view IS NOT NULL;
