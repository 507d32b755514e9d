-- name: renew_leases
-- Extend this worker's leases; the answer says which are still current and which were told to stop. Whatever takes several
-- leases takes them in the order of their ids, lest a renewal and a settlement wait for each other.
WITH held AS MATERIALIZED (
    SELECT lease_id FROM lease
    WHERE worker_id = %(worker)s::uuid AND lease_id = ANY(%(leases)s::bigint[])
    ORDER BY lease_id FOR NO KEY UPDATE
)
UPDATE lease l
SET expires_at = clock_timestamp() + make_interval(secs => q.lease_ttl_s)
FROM held h, pool q
WHERE l.lease_id = h.lease_id AND q.id = l.pool_id
RETURNING l.lease_id, l.cancel_requested_at IS NOT NULL;

-- name: pick_up_leases
-- Leases that another engine's plan gave to this worker, with what is needed to run them.
WITH given AS MATERIALIZED (
    SELECT lease_id FROM lease WHERE worker_id = %(worker)s::uuid AND NOT picked_up ORDER BY lease_id FOR NO KEY UPDATE
),
mine AS (
    UPDATE lease l SET picked_up = true
    FROM given g WHERE l.lease_id = g.lease_id
    RETURNING l.lease_id, l.task_id, l.attempt, l.pool_id, l.tenant_id,
              extract(epoch FROM l.timeout_at - l.started_at)::float8 AS timeout_s,
              l.degraded, l.demand_id, l.reserved_nano, l.capped, l.model
)
SELECT m.lease_id, m.task_id, m.attempt, m.pool_id, m.tenant_id, t.kind, t.key, m.timeout_s,
       extract(epoch FROM p.deadline_at)::float8, %(worker)s::text,
       (CASE WHEN m.model IS NULL THEN p.payload ELSE p.payload || jsonb_build_object('model', m.model) END)::text,
       t.links & 2 <> 0, m.degraded, p.tags::text, m.demand_id < 0, m.reserved_nano,
       CASE WHEN m.capped THEN p.pricing::text END
FROM mine m JOIN task t ON t.id = m.task_id JOIN task_payload p ON p.task_id = m.task_id
ORDER BY m.lease_id;

-- name: cancelled_leases
SELECT lease_id FROM lease WHERE worker_id = %(worker)s::uuid AND cancel_requested_at IS NOT NULL;

-- name: register_worker
INSERT INTO worker (id, name, kind, slots, draining, labels)
VALUES (%(id)s::uuid, %(name)s, %(kind)s, %(slots)s::jsonb, false, %(labels)s::varchar[])
ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, draining = false, seen_at = clock_timestamp();

-- name: see_worker
-- The heartbeat of the process itself. Zero rows: the worker was forgotten and must register again.
UPDATE worker SET seen_at = clock_timestamp()
WHERE id = %(worker)s::uuid
  -- For what follows in this transaction: leases that a suspended engine was about to renew must not stay locked.
  AND set_config('idle_in_transaction_session_timeout', '5s', true) <> '';

-- name: drain_worker
UPDATE worker SET draining = true WHERE id = %(worker)s::uuid;

-- name: forget_worker
DELETE FROM worker WHERE id = %(worker)s::uuid;

-- name: forget_stale_workers
DELETE FROM worker w
WHERE w.seen_at < clock_timestamp() - make_interval(secs => %(stale_s)s)
  AND NOT EXISTS (SELECT FROM lease l WHERE l.worker_id = w.id);

-- name: take_leadership
-- Become or stay the planner's leader. Zero rows: somebody else is.
INSERT INTO leader AS l (name, holder, term, expires_at)
VALUES ('planner', %(me)s::uuid, 1, clock_timestamp() + make_interval(secs => %(ttl_s)s))
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder,
    term = l.term + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END,
    expires_at = excluded.expires_at
WHERE l.holder IS NULL OR l.holder = excluded.holder OR l.expires_at < clock_timestamp()
-- A leader that is suspended before it commits must not keep others from taking over.
RETURNING term, set_config('idle_in_transaction_session_timeout', '5s', true);

-- name: give_up_leadership
UPDATE leader SET holder = NULL, expires_at = clock_timestamp() WHERE name = 'planner' AND holder = %(me)s::uuid;
