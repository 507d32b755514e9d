-- name: raise_epoch
-- A kill of everything, a tenant or a pool. Zero rows: it is in force already.
INSERT INTO kill_epoch AS k (scope, scope_id, epoch, actor, reason)
VALUES (%(scope)s, %(id)s, 1, %(actor)s, %(reason)s)
ON CONFLICT (scope, scope_id) DO UPDATE
SET epoch = k.epoch + 1, killed_at = clock_timestamp(), lifted_at = NULL, actor = excluded.actor, reason = excluded.reason
WHERE k.lifted_at IS NOT NULL
RETURNING epoch;

-- name: lift_epoch
-- Zero rows: nothing is in force.
UPDATE kill_epoch SET lifted_at = clock_timestamp()
WHERE scope = %(scope)s AND scope_id = %(id)s AND lifted_at IS NULL
RETURNING epoch;

-- name: read_kills
SELECT k.scope, coalesce(t.slug, p.name, ''), k.epoch, extract(epoch FROM k.killed_at)::float8, k.actor, k.reason
FROM kill_epoch k
LEFT JOIN tenant t ON k.scope = 'tenant' AND t.id = k.scope_id
LEFT JOIN pool p ON k.scope = 'pool' AND p.id = k.scope_id
WHERE k.lifted_at IS NULL
ORDER BY k.scope, 2;

-- name: tell_killed
-- Tell everything that runs under a kill to stop; the first request stands.
UPDATE lease l SET cancel_requested_at = clock_timestamp()
FROM (
    SELECT l.lease_id FROM lease l
    JOIN kill_epoch k ON k.lifted_at IS NULL
     AND (k.scope = 'everything' OR k.scope = 'tenant' AND k.scope_id = l.tenant_id
          OR k.scope = 'pool' AND k.scope_id = l.pool_id)
    WHERE l.cancel_requested_at IS NULL
    ORDER BY l.lease_id FOR NO KEY UPDATE OF l SKIP LOCKED
) found
WHERE l.lease_id = found.lease_id
RETURNING l.lease_id;

-- name: count_reached
-- What runs under a kill of everything, of a tenant or of a pool.
SELECT count(*) FROM lease l
WHERE %(scope)s = 'everything' OR %(scope)s = 'tenant' AND l.tenant_id = %(id)s OR %(scope)s = 'pool' AND l.pool_id = %(id)s;
