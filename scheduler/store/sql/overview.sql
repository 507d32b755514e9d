-- name: fold_counts
-- Add the appended changes to the folded counts, and to the depths. Any reader sees either both or neither.
WITH mark AS (
    -- Its row is ours since `mark_fold`: folds are numbered without a gap.
    UPDATE fold_mark m SET folds = m.folds + 1 WHERE m.id = 1 AND EXISTS (SELECT FROM task_delta)
    RETURNING m.folds, set_config('idle_in_transaction_session_timeout', '5s', true)
),
taken AS (
    DELETE FROM task_delta d USING mark
    RETURNING d.id, d.pool_id, d.priority, d.tenant_id, d.demand_id, d.counter, d.n, d.came_from
),
told AS (
    -- The planner reads arrivals from the changes. Here it finds, in the same words, those that are not there any more.
    INSERT INTO folded_arrivals AS f (fold, lanes)
    SELECT mark.folds,
           (SELECT json_agg(json_build_array(a.pool_id, a.priority, a.tenant_id, a.demand_id, a.times, a.last,
                                             CASE WHEN a.demand_id < 0 THEN
                                                 (SELECT d.base_id FROM demand d WHERE d.id = a.demand_id) END))
            FROM (SELECT pool_id, priority, tenant_id, demand_id, count(*) AS times, max(id) AS last FROM taken
                  WHERE counter = 'ready' AND n > 0 GROUP BY 1, 2, 3, 4) a)
    FROM mark
    ON CONFLICT (fold) DO UPDATE SET lanes = excluded.lanes
),
forgotten AS (
    -- A planner that has not looked for so many folds reads all lanes. None is newer than ours, unless a table was emptied.
    DELETE FROM folded_arrivals f USING mark WHERE f.fold NOT BETWEEN mark.folds - 8 AND mark.folds
),
moved AS MATERIALIZED (
    -- As the view `task_change` does.
    SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id, each.counter, sum(each.n) AS n
    FROM taken t
    CROSS JOIN LATERAL (
        VALUES (t.counter, t.n), (t.came_from, -t.n),
               (CASE WHEN t.counter = 'running' AND t.came_from IS NOT NULL THEN 'started' END, t.n)
    ) AS each(counter, n)
    WHERE each.counter IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
),
deeper AS (
    INSERT INTO waiting_depth AS d (scope, scope_id, waiting, running)
    SELECT scope, scope_id,
           coalesce(sum(n) FILTER (WHERE counter IN ('blocked', 'scheduled', 'ready', 'retrying')), 0),
           coalesce(sum(n) FILTER (WHERE counter = 'running'), 0)
    FROM (SELECT 'pool' AS scope, pool_id AS scope_id, counter, n FROM moved
          UNION ALL
          SELECT 'tenant', tenant_id, counter, n FROM moved) AS moves
    GROUP BY 1, 2
    ON CONFLICT (scope, scope_id)
    DO UPDATE SET waiting = d.waiting + excluded.waiting, running = d.running + excluded.running
)
INSERT INTO task_count AS c (pool_id, priority, tenant_id, demand_id, counter, n)
SELECT pool_id, priority, tenant_id, demand_id, counter, n FROM moved
WHERE n <> 0
ON CONFLICT (pool_id, priority, tenant_id, demand_id, counter) DO UPDATE SET n = c.n + excluded.n;

-- name: mark_fold
-- Before a fold: which task ids are drawn. The mark of the fold before is kept, so that whoever drew an id and had not
-- committed when the last fold began is still counted among those who came since.
INSERT INTO fold_mark AS m (id, last_task_id, before_task_id)
SELECT 1, last_value, 0 FROM task_id_seq
ON CONFLICT (id) DO UPDATE SET before_task_id = m.last_task_id, last_task_id = excluded.last_task_id;

-- name: read_counts
SELECT pool_id, priority, counter, sum(n)::bigint
FROM (SELECT pool_id, priority, counter, n FROM task_count
      UNION ALL
      SELECT pool_id, priority, counter, n FROM task_change) AS counts
GROUP BY 1, 2, 3;

-- name: recount
-- What the counts should be, from the tasks themselves. Reads every task: for checks, not for pages.
SELECT pool_id, priority, state, count(*) FROM task GROUP BY 1, 2, 3;

-- name: waiting_by_demand
SELECT demand_id, sum(n)::bigint
FROM (SELECT demand_id, n FROM task_count WHERE counter = 'ready'
      UNION ALL
      SELECT demand_id, n FROM task_change WHERE counter = 'ready') AS counts
GROUP BY 1 HAVING sum(n) > 0;

-- name: oldest_waiting
-- When the longest waiting ready task of each pool and class became ready: one look at each lane's head.
SELECT p.id, lane.priority, min(head.ready_at)
FROM pool p
CROSS JOIN LATERAL (
    WITH RECURSIVE hop AS (
        (SELECT t.priority, t.tenant_id, t.demand_id FROM task t
         WHERE t.state = 'ready' AND t.pool_id = p.id
         ORDER BY t.priority, t.tenant_id, t.demand_id LIMIT 1)
        UNION ALL
        SELECT n.priority, n.tenant_id, n.demand_id
        FROM hop h CROSS JOIN LATERAL (
            SELECT t.priority, t.tenant_id, t.demand_id FROM task t
            WHERE t.state = 'ready' AND t.pool_id = p.id
              AND (t.priority, t.tenant_id, t.demand_id) > (h.priority, h.tenant_id, h.demand_id)
            ORDER BY t.priority, t.tenant_id, t.demand_id LIMIT 1
        ) n
    )
    SELECT * FROM hop
) lane
CROSS JOIN LATERAL (
    SELECT extract(epoch FROM t.ready_at)::float8 AS ready_at FROM task t
    WHERE t.state = 'ready' AND t.pool_id = p.id AND t.priority = lane.priority AND t.tenant_id = lane.tenant_id
      AND t.demand_id = lane.demand_id
    ORDER BY t.ready_at, t.id LIMIT 1
) head
GROUP BY 1, 2;

-- name: recent_failures
SELECT a.task_id, pool.name, tenant.slug, t.kind, a.failure_class, a.message, a.number,
       extract(epoch FROM a.finished_at)::float8
FROM attempt a
JOIN task t ON t.id = a.task_id
JOIN pool ON pool.id = a.pool_id
JOIN tenant ON tenant.id = a.tenant_id
WHERE a.outcome IN ('failed', 'timed_out', 'lost')
ORDER BY a.finished_at DESC, a.lease_id DESC
LIMIT %(rows_max)s;

-- name: read_workers
SELECT w.id::text, w.name, w.kind, w.slots, w.draining, extract(epoch FROM w.seen_at)::float8,
       (SELECT count(*) FROM lease l WHERE l.worker_id = w.id),
       EXISTS (SELECT FROM leader d WHERE d.name = 'planner' AND d.holder = w.id AND d.expires_at > clock_timestamp())
FROM worker w
ORDER BY w.name, w.id
LIMIT %(rows_max)s;

-- name: offered_slots
-- Who offers slots to a pool, who of them takes work of a tenant (NULL: of anybody) with labels, and what those have free.
SELECT count(*), count(*) FILTER (WHERE o.suits),
       coalesce(sum(greatest(o.slots - o.busy, 0)) FILTER (WHERE o.suits), 0)::bigint
FROM (
    SELECT (w.slots ->> (%(pool)s::bigint)::text)::bigint AS slots,
           (SELECT count(*) FROM lease l WHERE l.worker_id = w.id AND l.pool_id = %(pool)s::bigint) AS busy,
           (%(tenant)s::bigint IS NULL OR w.tenant_id IS NULL OR w.tenant_id = %(tenant)s::bigint)
           AND %(labels)s::varchar[] <@ coalesce(w.labels, '{}') AS suits
    FROM worker w
    WHERE NOT w.draining AND w.seen_at > clock_timestamp() - make_interval(secs => %(fresh_s)s)
      AND w.slots ? (%(pool)s::bigint)::text
) o;

-- name: read_pools
SELECT id, name, executor, slots, extract(epoch FROM paused_at)::float8, paused_by, pause_reason,
       extract(epoch FROM resume_at)::float8, slo::text
FROM pool ORDER BY name;

-- name: running_by_pool
SELECT pool_id, count(*) FROM lease GROUP BY 1;

-- name: running_tasks
-- What runs in a pool, longest first. Leases are as many as attempts run.
SELECT l.task_id, t.slug, l.priority, l.attempt, extract(epoch FROM l.started_at)::float8,
       l.cancel_requested_at IS NOT NULL
FROM lease l JOIN pool p ON p.id = l.pool_id JOIN tenant t ON t.id = l.tenant_id
WHERE p.name = %(pool)s
ORDER BY l.started_at, l.lease_id
LIMIT %(rows_max)s;

-- name: add_snapshot
INSERT INTO snapshot (body) VALUES (%(body)s::jsonb) RETURNING seq;

-- name: latest_snapshot
SELECT seq, extract(epoch FROM as_of)::float8, body::text FROM snapshot ORDER BY seq DESC LIMIT 1;

-- name: prune_snapshots
DELETE FROM snapshot WHERE seq <= (SELECT max(seq) FROM snapshot) - %(keep)s;
