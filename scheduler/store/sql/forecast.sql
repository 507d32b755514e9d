-- name: read_present
-- What a forecast starts from, at one moment: the time, pools with their rules of trying again, workers seen lately, what
-- runs (so many), and by lane what waits and what was ever started. Cost grows with lanes, not with tasks.
SELECT
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT json_agg(json_build_array(q.id, q.name, q.slots, q.paused_at IS NOT NULL, q.max_attempts,
                                      q.backoff_initial_s, q.backoff_multiplier, q.backoff_max_s) ORDER BY q.name)
     FROM pool q)::text,
    (SELECT json_agg(w.slots) FROM worker w
     WHERE NOT w.draining AND w.seen_at > clock_timestamp() - make_interval(secs => %(fresh_s)s))::text,
    (SELECT json_agg(json_build_array(l.pool_id, l.priority, l.tenant_id, l.demand_id, l.amounts,
                                      extract(epoch FROM l.started_at), extract(epoch FROM l.ready_at), l.task_id,
                                      l.attempt))
     FROM (SELECT * FROM lease ORDER BY lease_id DESC LIMIT %(leases_max)s) l)::text,
    (SELECT json_agg(json_build_array(c.pool_id, c.priority, c.tenant_id, c.demand_id, c.ready, c.started))
     FROM (
        SELECT n.pool_id, n.priority, n.tenant_id, n.demand_id,
               coalesce(sum(n.n) FILTER (WHERE n.counter = 'ready'), 0) AS ready,
               coalesce(sum(n.n) FILTER (WHERE n.counter = 'started'), 0) AS started
        FROM (SELECT pool_id, priority, tenant_id, demand_id, counter, n FROM task_count
              UNION ALL
              SELECT pool_id, priority, tenant_id, demand_id, counter, n FROM task_change) AS n
        WHERE n.counter IN ('ready', 'started')
        GROUP BY 1, 2, 3, 4
     ) c)::text;

-- name: read_tenants
SELECT t.id, t.weight, t.status = 'suspended', t.start_rate, t.start_burst, s.level,
       extract(epoch FROM s.level_at)::float8, t.max_in_flight
FROM tenant t LEFT JOIN tenant_state s ON s.tenant_id = t.id
WHERE t.id = ANY(%(tenants)s::bigint[]);

-- name: read_ended
-- Attempts that ended since: some of them, if they were many.
SELECT a.pool_id, a.priority, a.tenant_id, t.demand_id, t.kind, a.task_id, a.number,
       extract(epoch FROM a.ready_at)::float8, extract(epoch FROM a.started_at)::float8,
       extract(epoch FROM a.finished_at)::float8, a.outcome, a.failure_class, a.retry_after_s,
       t.amounts, t.expected_s
FROM (SELECT * FROM attempt WHERE finished_at > to_timestamp(%(since)s) LIMIT %(rows_max)s) a
JOIN task t ON t.id = a.task_id;

-- name: read_newest
-- Of each lane the newest ready task that came since, and how many did (counted up to a bound).
SELECT l.n, newest.id, newest.ready_at, since.n
FROM unnest(%(pools)s::bigint[], %(priorities)s::smallint[], %(tenants)s::bigint[], %(demands)s::bigint[])
     WITH ORDINALITY AS l(pool_id, priority, tenant_id, demand_id, n)
CROSS JOIN LATERAL (
    SELECT t.id, extract(epoch FROM t.ready_at)::float8 AS ready_at FROM task t
    WHERE t.state = 'ready' AND t.attempts = 0 AND t.pool_id = l.pool_id AND t.priority = l.priority
      AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id AND t.ready_at > to_timestamp(%(since)s)
    ORDER BY t.ready_at DESC, t.id DESC LIMIT 1
) newest
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM task t
        WHERE t.state = 'ready' AND t.pool_id = l.pool_id AND t.priority = l.priority
          AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id AND t.ready_at > to_timestamp(%(since)s)
        LIMIT %(count_max)s
    ) counted
) since;

-- name: add_log
INSERT INTO forecast_log (pool_id, priority, task_id, ready_at, raw_p50_s, raw_p90_s, p50_s, p90_s, wait_s)
SELECT * FROM unnest(%(pools)s::bigint[], %(priorities)s::smallint[], %(tasks)s::bigint[], %(ready_ats)s::float8[],
                     %(raw_p50s)s::float8[], %(raw_p90s)s::float8[], %(p50s)s::float8[], %(p90s)s::float8[],
                     %(waits)s::float8[]);

-- name: resolve_log
-- Predictions whose tasks have started since.
UPDATE forecast_log f
SET wait_s = greatest(0.0, found.started_at - f.ready_at)
FROM (
    SELECT o.id, extract(epoch FROM first.started_at)::float8 AS started_at
    FROM (SELECT id, task_id FROM forecast_log WHERE wait_s IS NULL ORDER BY id LIMIT %(rows_max)s) o
    CROSS JOIN LATERAL (
        SELECT l.started_at FROM lease l WHERE l.task_id = o.task_id AND l.attempt = 1
        UNION ALL
        SELECT a.started_at FROM attempt a WHERE a.task_id = o.task_id
        ORDER BY started_at LIMIT 1
    ) first
) found
WHERE f.id = found.id
RETURNING f.pool_id, f.priority, f.raw_p50_s, f.raw_p90_s, f.wait_s;

-- name: prune_log
-- Forget what is long past, and predictions of tasks that never started.
DELETE FROM forecast_log
WHERE id <= (SELECT max(id) FROM forecast_log) - %(keep)s
   OR (wait_s IS NULL AND said_at < clock_timestamp() - make_interval(secs => %(open_s)s));

-- name: read_outcomes
SELECT q.name, f.priority, f.p50_s, f.p90_s, f.wait_s
FROM forecast_log f JOIN pool q ON q.id = f.pool_id
WHERE f.wait_s IS NOT NULL AND f.said_at > clock_timestamp() - make_interval(secs => %(window_s)s)
ORDER BY f.id DESC
LIMIT %(rows_max)s;

-- name: write_state
INSERT INTO forecast_state (name, body) VALUES (%(name)s, %(body)s::jsonb)
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: read_state
SELECT body::text, extract(epoch FROM clock_timestamp())::float8 FROM forecast_state WHERE name = %(name)s;

-- name: write_durations
INSERT INTO learned_duration AS d (pool_id, kind, bins, p90_s)
SELECT * FROM unnest(%(pools)s::bigint[], %(kinds)s::text[], %(bins)s::jsonb[], %(p90s)s::float8[])
ON CONFLICT (pool_id, kind) DO UPDATE SET bins = excluded.bins, p90_s = excluded.p90_s;

-- name: read_durations
SELECT pool_id, kind, bins::text FROM learned_duration ORDER BY pool_id, kind LIMIT %(rows_max)s;
