-- name: register_remote
-- A remote worker comes, or comes back under its id. Zero rows: that id is somebody else's.
INSERT INTO worker AS w (id, name, kind, slots, draining, declared, tenant_id, labels, gateway_id)
VALUES (%(id)s::uuid, %(name)s, 'remote', %(slots)s::jsonb, false, %(declared)s::jsonb, %(tenant)s, %(labels)s::varchar[],
        %(gateway)s::uuid)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, slots = excluded.slots, declared = excluded.declared, labels = excluded.labels,
    gateway_id = excluded.gateway_id, seen_at = clock_timestamp()
WHERE w.kind = 'remote' AND w.tenant_id IS NOT DISTINCT FROM excluded.tenant_id
RETURNING w.id::text;

-- name: strays_of_remote
-- What a worker was given before it came (back) and does not name. It names all that reached it, so this never did.
SELECT lease_id FROM lease
WHERE worker_id = %(worker)s::uuid AND picked_up AND lease_id <> ALL(%(named)s::bigint[])
ORDER BY lease_id;

-- name: find_remote
SELECT id::text, tenant_id, declared::text, draining FROM worker
WHERE id = ANY(%(workers)s::uuid[]) AND kind = 'remote';

-- name: offer_slots
-- What these workers offer now, through this gateway. One that is missing from the answer was forgotten, or offers
-- something elsewhere meanwhile: who offers nothing any more here may have gone there.
UPDATE worker w
SET slots = n.slots, gateway_id = %(gateway)s::uuid, seen_at = clock_timestamp()
FROM unnest(%(workers)s::uuid[], %(offers)s::jsonb[]) AS n(id, slots)
WHERE w.id = n.id AND w.kind = 'remote' AND (n.slots <> '{}'::jsonb OR w.gateway_id = %(gateway)s::uuid)
RETURNING w.id::text;

-- name: withdraw_offers
-- These workers are gone from this gateway; those that came to another one meanwhile are left alone.
UPDATE worker SET slots = '{}'::jsonb, gateway_id = NULL
WHERE id = ANY(%(workers)s::uuid[]) AND gateway_id = %(gateway)s::uuid;

-- name: beat_gateway
-- The workers connected here live. One that is missing from the answer went to another gateway, or was forgotten.
UPDATE worker SET seen_at = clock_timestamp()
WHERE id = ANY(%(workers)s::uuid[]) AND gateway_id = %(gateway)s::uuid
RETURNING id::text, draining;

-- name: elsewhere
-- Those of these workers that are at another gateway now. One that is at none was taken off by its earlier connection, which
-- ended late, or was forgotten.
SELECT id::text FROM worker WHERE id = ANY(%(workers)s::uuid[]) AND gateway_id <> %(gateway)s::uuid;

-- name: claim_given
-- Leases that plans gave to workers of this gateway and that nobody has come for yet, with what is needed to run them.
WITH given AS MATERIALIZED (
    SELECT l.lease_id FROM lease l JOIN worker w ON w.id = l.worker_id
    WHERE NOT l.picked_up AND w.gateway_id = %(gateway)s::uuid
    ORDER BY l.lease_id FOR NO KEY UPDATE OF l
),
mine AS (
    UPDATE lease l SET picked_up = true
    FROM given g WHERE l.lease_id = g.lease_id
    RETURNING l.lease_id, l.task_id, l.attempt, l.pool_id, l.tenant_id, l.worker_id,
              extract(epoch FROM l.timeout_at - l.started_at)::float8 AS timeout_s, l.degraded, l.demand_id,
              l.reserved_nano, l.capped, l.model
)
SELECT q.name, n.slug, q.lease_ttl_s, m.lease_id, m.task_id, m.attempt, m.pool_id, m.tenant_id, t.kind, t.key,
       m.timeout_s, extract(epoch FROM p.deadline_at)::float8, m.worker_id::text,
       (CASE WHEN m.model IS NULL THEN p.payload ELSE p.payload || jsonb_build_object('model', m.model) END)::text,
       t.links & 2 <> 0, m.degraded, p.tags::text, m.demand_id < 0, m.reserved_nano,
       CASE WHEN m.capped THEN p.pricing::text END
FROM mine m
JOIN task t ON t.id = m.task_id
JOIN task_payload p ON p.task_id = m.task_id
JOIN pool q ON q.id = m.pool_id
JOIN tenant n ON n.id = m.tenant_id
ORDER BY m.lease_id;

-- name: leases_of_workers
-- What runs at these workers, and which of it is to stop: 1 its task was cancelled, 2 its time is over.
SELECT lease_id, worker_id::text, extract(epoch FROM clock_timestamp() - started_at)::float8,
       CASE WHEN cancel_requested_at IS NOT NULL THEN 1 WHEN timeout_at < clock_timestamp() THEN 2 ELSE 0 END
FROM lease
WHERE worker_id = ANY(%(workers)s::uuid[]) AND picked_up;

-- name: renew_remote
-- Extend leases of remote workers, for those who may speak for them: a tenant for its own workers, `*` for all, and only
-- in the pools that its token names (NULL: any). A lease that is missing from the answer is not theirs any more.
WITH held AS MATERIALIZED (
    SELECT l.lease_id
    FROM unnest(%(leases)s::bigint[], %(tenants)s::bigint[], %(pools)s::text[]) AS n(lease_id, tenant_id, pools)
    JOIN lease l ON l.lease_id = n.lease_id
    JOIN pool q ON q.id = l.pool_id AND (n.pools IS NULL OR q.name = ANY(n.pools::text[]))
    JOIN worker w ON w.id = l.worker_id AND w.kind = 'remote' AND (n.tenant_id IS NULL OR w.tenant_id = n.tenant_id)
    ORDER BY l.lease_id FOR NO KEY UPDATE OF l
)
UPDATE lease l
SET expires_at = clock_timestamp() + make_interval(secs => q.lease_ttl_s)
FROM held h, pool q
WHERE l.lease_id = h.lease_id AND q.id = l.pool_id
RETURNING l.lease_id,
          CASE WHEN l.cancel_requested_at IS NOT NULL THEN 1 WHEN l.timeout_at < clock_timestamp() THEN 2 ELSE 0 END,
          l.degraded, extract(epoch FROM l.expires_at)::float8;

-- name: own_leases
-- Which of these leases those who report on them may speak for.
SELECT l.lease_id
FROM unnest(%(leases)s::bigint[], %(tenants)s::bigint[], %(pools)s::text[]) AS n(lease_id, tenant_id, pools)
JOIN lease l ON l.lease_id = n.lease_id
JOIN pool q ON q.id = l.pool_id
JOIN worker w ON w.id = l.worker_id AND w.kind = 'remote'
WHERE (n.tenant_id IS NULL OR w.tenant_id = n.tenant_id) AND (n.pools IS NULL OR q.name = ANY(n.pools::text[]));

-- name: drain_remote
-- An operator wants the worker to finish what it has and take nothing new.
UPDATE worker SET draining = true
WHERE id = %(worker)s::uuid AND kind = 'remote' AND (%(tenant)s::bigint IS NULL OR tenant_id = %(tenant)s::bigint);

-- name: list_remote
SELECT w.id::text, w.name, n.slug, w.labels, w.declared::text, w.slots::text, w.draining,
       extract(epoch FROM w.started_at)::float8, extract(epoch FROM w.seen_at)::float8,
       (SELECT count(*) FROM lease l WHERE l.worker_id = w.id)
FROM worker w LEFT JOIN tenant n ON n.id = w.tenant_id
WHERE w.kind = 'remote' AND (%(tenant)s::bigint IS NULL OR w.tenant_id = %(tenant)s::bigint)
ORDER BY w.started_at DESC, w.id
LIMIT %(rows_max)s;
