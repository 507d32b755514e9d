-- name: lock_dispatch
-- One plan at a time. Any engine may plan; this keeps two from drawing on the same slots and permits at once.
-- Two keys: a namespace of ours ('cq') and the lock's number in it. The tables turn over too fast for their statistics
-- to be true, and every statement here has its index: the optimizer is told not to trust the former over the latter.
SELECT pg_advisory_xact_lock(25457, 1), set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true);

-- name: lock_resources
-- Every shared limit with its state, locked in id order against settlements. The clock is read after the locks.
SELECT r.id, r.kind, s.level, extract(epoch FROM s.level_at)::float8, r.rate, r.burst, r.permits, r.margin, s.factor,
       extract(epoch FROM s.blocked_until)::float8
FROM resource r JOIN resource_state s ON s.resource_id = r.id
ORDER BY r.id
FOR UPDATE OF s;

-- name: read_now
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: read_pools
SELECT id, slots, paused_at IS NOT NULL, lease_ttl_s, timeout_s FROM pool ORDER BY id;

-- name: read_workers
-- Workers that may be given work: seen lately and not draining.
SELECT id::text, slots FROM worker
WHERE NOT draining AND seen_at > clock_timestamp() - make_interval(secs => %(fresh_s)s)
ORDER BY id;

-- name: read_in_flight
-- Live leases by pool and worker, and what they hold of each demand's resources, by position.
SELECT l.pool_id, l.worker_id::text, l.demand_id, count(*), sum(l.amounts[1]), sum(l.amounts[2]), sum(l.amounts[3]),
       sum(l.amounts[4]), sum(l.amounts[5]), sum(l.amounts[6]), sum(l.amounts[7]), sum(l.amounts[8])
FROM lease l
GROUP BY 1, 2, 3;

-- name: ready_lanes
-- Every lane with ready work in pools that have a free slot, by jumping from lane to lane along task_ready_by_lane.
SELECT p.id, lane.priority, lane.tenant_id, lane.demand_id
FROM (
    SELECT q.id FROM pool q
    WHERE q.paused_at IS NULL AND q.slots > (SELECT count(*) FROM lease l WHERE l.pool_id = q.id)
) p
CROSS JOIN LATERAL (
    WITH RECURSIVE hop AS (
        (SELECT t.priority, t.tenant_id, t.demand_id
         FROM task t
         WHERE t.state = 'ready' AND t.pool_id = p.id
         ORDER BY t.priority, t.tenant_id, t.demand_id
         LIMIT 1)
        UNION ALL
        SELECT n.priority, n.tenant_id, n.demand_id
        FROM hop h
        CROSS JOIN LATERAL (
            SELECT t.priority, t.tenant_id, t.demand_id
            FROM task t
            WHERE t.state = 'ready' AND t.pool_id = p.id
              AND (t.priority, t.tenant_id, t.demand_id) > (h.priority, h.tenant_id, h.demand_id)
            ORDER BY t.priority, t.tenant_id, t.demand_id
            LIMIT 1
        ) n
    )
    SELECT * FROM hop
) lane;

-- name: lane_windows
-- The first `width` tasks of each lane, in order.
SELECT l.n, t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8, t.expected_s,
       t.amounts
FROM unnest(%(pools)s::bigint[], %(priorities)s::smallint[], %(tenants)s::bigint[], %(demands)s::bigint[])
     WITH ORDINALITY AS l(pool_id, priority, tenant_id, demand_id, n)
CROSS JOIN LATERAL (
    SELECT id, ready_at, latest_start, expected_s, amounts
    FROM task t
    WHERE t.state = 'ready' AND t.pool_id = l.pool_id AND t.priority = l.priority
      AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id
    ORDER BY t.ready_at, t.id
    LIMIT %(width)s
) t;

-- name: urgent_windows
-- The first `width` tasks of each lane by latest start; lanes without deadlines give no row.
SELECT l.n, t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8, t.expected_s,
       t.amounts
FROM unnest(%(pools)s::bigint[], %(priorities)s::smallint[], %(tenants)s::bigint[], %(demands)s::bigint[])
     WITH ORDINALITY AS l(pool_id, priority, tenant_id, demand_id, n)
CROSS JOIN LATERAL (
    SELECT id, ready_at, latest_start, expected_s, amounts
    FROM task t
    WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.pool_id = l.pool_id AND t.priority = l.priority
      AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id
    ORDER BY t.latest_start, t.id
    LIMIT %(width)s
) t;

-- name: read_tenants
SELECT t.id, t.weight, t.status = 'suspended', f.priority, f.value, extract(epoch FROM f.last_start_at)::float8
FROM tenant t LEFT JOIN fair_counter f ON f.tenant_id = t.id
WHERE t.id = ANY(%(tenants)s::bigint[]);

-- name: read_demands
SELECT id, resource_ids FROM demand WHERE id = ANY(%(demands)s::bigint[]);

-- name: read_fairness
SELECT NULL::bigint, priority, value FROM fair_clock
UNION ALL
SELECT pool_id, priority, value FROM class_credit;

-- name: claim_tasks
-- Start ready tasks under fresh leases. A task missing from the result was taken, cancelled or moved meanwhile.
-- The payload comes along for the worker that asks (`me`); others fetch theirs when they pick the lease up.
WITH wanted AS (
    SELECT * FROM unnest(%(tasks)s::bigint[], %(workers)s::uuid[]) WITH ORDINALITY AS w(task_id, worker_id, place)
),
claimed AS (
    UPDATE task t
    SET state = 'running', attempts = t.attempts + 1
    FROM wanted w JOIN task_payload p ON p.task_id = w.task_id
    WHERE t.id = w.task_id AND t.state = 'ready'
    RETURNING t.id, t.attempts, t.pool_id, t.tenant_id, t.demand_id, t.priority, t.amounts, t.ready_at, t.kind, t.key,
              w.worker_id, w.place, p.timeout_s,
              extract(epoch FROM p.deadline_at)::float8 AS deadline_at,
              CASE WHEN w.worker_id = %(me)s::uuid THEN p.payload::text END AS payload
),
leased AS (
    INSERT INTO lease (task_id, attempt, pool_id, tenant_id, demand_id, priority, worker_id, amounts, ready_at,
                       started_at, expires_at, timeout_at, picked_up)
    SELECT c.id, c.attempts, c.pool_id, c.tenant_id, c.demand_id, c.priority, c.worker_id, c.amounts, c.ready_at,
           moment.now, moment.now + make_interval(secs => q.lease_ttl_s),
           moment.now + make_interval(secs => coalesce(c.timeout_s, q.timeout_s)), c.worker_id = %(me)s::uuid
    FROM claimed c
    JOIN unnest(%(pools)s::bigint[], %(ttls_s)s::float8[], %(timeouts_s)s::float8[])
         AS q(pool_id, lease_ttl_s, timeout_s) ON q.pool_id = c.pool_id
    CROSS JOIN (SELECT clock_timestamp() AS now) moment
    ORDER BY c.place
    RETURNING lease_id, task_id, extract(epoch FROM timeout_at - started_at)::float8 AS timeout_s
)
SELECT l.lease_id, l.task_id, c.attempts, c.pool_id, c.tenant_id, c.kind, c.key, l.timeout_s, c.deadline_at,
       c.worker_id::text, c.payload
FROM leased l JOIN claimed c ON c.id = l.task_id
ORDER BY c.place;

-- name: apply_levels
-- What the plan left in the buckets it drew on; the rows are locked since `lock_resources`.
UPDATE resource_state s
SET level = n.level, level_at = to_timestamp(%(now)s), taken_total = s.taken_total + n.taken
FROM unnest(%(resources)s::bigint[], %(levels)s::float8[], %(taken)s::float8[]) AS n(resource_id, level, taken)
WHERE s.resource_id = n.resource_id;

-- name: apply_fairness
-- Counters, clocks and credits as the plan leaves them. Safe to lose: they shape the order, not the promises.
WITH counters AS (
    INSERT INTO fair_counter AS f (tenant_id, priority, value, last_start_at)
    SELECT n.tenant_id, n.priority, n.value, to_timestamp(%(now)s)
    FROM unnest(%(tenants)s::bigint[], %(tenant_classes)s::smallint[], %(values)s::float8[])
         AS n(tenant_id, priority, value)
    ON CONFLICT (tenant_id, priority) DO UPDATE SET value = excluded.value, last_start_at = excluded.last_start_at
),
clocks AS (
    INSERT INTO fair_clock AS f (priority, value)
    SELECT n.priority, n.value FROM unnest(%(clock_classes)s::smallint[], %(clocks)s::float8[]) AS n(priority, value)
    ON CONFLICT (priority) DO UPDATE SET value = excluded.value
)
INSERT INTO class_credit AS c (pool_id, priority, value)
SELECT n.pool_id, n.priority, n.value
FROM unnest(%(credit_pools)s::bigint[], %(credit_classes)s::smallint[], %(credits)s::float8[])
     AS n(pool_id, priority, value)
ON CONFLICT (pool_id, priority) DO UPDATE SET value = excluded.value WHERE c.value <> excluded.value;
