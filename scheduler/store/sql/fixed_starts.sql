-- name: lock_bookings
-- Promises in these pools are made by one transaction at a time, in the order of the pools.
SELECT pg_advisory_xact_lock(25458, p::int) FROM (SELECT unnest(%(pools)s::bigint[]) AS p ORDER BY 1) AS pools;

-- name: read_bookings
-- What is booked in a pool after a time, by its end.
SELECT extract(epoch FROM f.starts_at)::float8, extract(epoch FROM f.ends_at)::float8
FROM fixed_start f JOIN task t ON t.id = f.task_id
WHERE f.pool_id = %(pool)s AND f.ends_at > to_timestamp(%(since)s)
  AND (%(until)s::float8 IS NULL OR f.starts_at < to_timestamp(%(until)s))
  AND t.state IN ('blocked', 'scheduled', 'ready', 'running')
ORDER BY f.ends_at
LIMIT %(rows_max)s;

-- name: read_held
-- For how many fixed starts a slot of the pool is kept free now, and when the next of them starts. As a plan counts them
-- (dispatch.sql: read_control).
SELECT count(*), extract(epoch FROM min(f.starts_at))::float8
FROM fixed_start f JOIN task t ON t.id = f.task_id
WHERE f.pool_id = %(pool)s AND f.held_from <= statement_timestamp()
  AND f.starts_at > statement_timestamp() - make_interval(secs => %(held_after_s)s)
  AND f.starts_at <= statement_timestamp() + make_interval(secs => %(held_ahead_s)s)
  AND t.state IN ('scheduled', 'ready') AND t.attempts = 0 AND f.task_id IS DISTINCT FROM %(but)s::bigint;

-- name: insert_fixed_starts
INSERT INTO fixed_start (task_id, pool_id, starts_at, ends_at, held_from, tolerance_s, on_miss, expires_at)
SELECT n.task_id, n.pool_id, to_timestamp(n.starts_at), to_timestamp(n.ends_at), to_timestamp(n.held_from),
       n.tolerance_s, n.on_miss, to_timestamp(n.expires_at)
FROM unnest(%(tasks)s::bigint[], %(pools)s::bigint[], %(starts)s::float8[], %(ends)s::float8[], %(helds)s::float8[],
            %(tolerances_s)s::float8[], %(on_misses)s::text[], %(expires)s::float8[])
     AS n(task_id, pool_id, starts_at, ends_at, held_from, tolerance_s, on_miss, expires_at);

-- name: read_fixed_start
SELECT extract(epoch FROM starts_at)::float8, tolerance_s, on_miss FROM fixed_start WHERE task_id = %(task)s;
