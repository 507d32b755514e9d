-- name: ensure_groups
-- Make the groups that are new; a group that is there stays as it is.
INSERT INTO task_group (tenant_id, name, "join")
SELECT * FROM unnest(%(tenants)s::bigint[], %(names)s::text[], %(joins)s::text[])
ON CONFLICT (tenant_id, name) DO NOTHING;

-- name: read_groups
-- They are held until the submission commits, so that none is forgotten meanwhile; what ends a group does not wait for that.
SELECT g.id, g.tenant_id, g.name, g."join", g.cancelled_at IS NOT NULL
FROM unnest(%(tenants)s::bigint[], %(names)s::text[]) AS n(tenant_id, name)
JOIN task_group g ON g.tenant_id = n.tenant_id AND g.name = n.name
ORDER BY g.id
FOR KEY SHARE OF g;

-- name: read_group
SELECT g.id, tenant.slug, g.name, g."join", extract(epoch FROM g.created_at)::float8,
       extract(epoch FROM g.cancelled_at)::float8, g.cause
FROM task_group g JOIN tenant ON tenant.id = g.tenant_id
WHERE g.tenant_id = %(tenant)s AND g.name = %(name)s;

-- name: list_groups
-- The newest first, a page.
SELECT g.id, tenant.slug, g.name, g."join", extract(epoch FROM g.created_at)::float8,
       extract(epoch FROM g.cancelled_at)::float8, g.cause
FROM task_group g JOIN tenant ON tenant.id = g.tenant_id
WHERE g.id < %(before)s AND (%(tenant)s::bigint IS NULL OR g.tenant_id = %(tenant)s)
ORDER BY g.id DESC
LIMIT %(rows_max)s;

-- name: count_members
SELECT t.state, count(*) FROM task_payload p JOIN task t ON t.id = p.task_id
WHERE p.group_id = %(group)s
GROUP BY t.state;

-- name: fail_groups
-- The groups of these failed tasks that fail fast end here. A group that is locked is just being ended by another.
WITH failed AS (
    SELECT p.group_id AS id, min(p.task_id) AS cause FROM task_payload p
    WHERE p.task_id = ANY(%(tasks)s::bigint[]) AND p.group_id IS NOT NULL
    GROUP BY p.group_id
),
found AS (
    SELECT g.id, f.cause FROM failed f JOIN task_group g ON g.id = f.id
    WHERE g."join" = 'fail_fast' AND g.cancelled_at IS NULL
    ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED
)
UPDATE task_group g SET cancelled_at = clock_timestamp(), cause = found.cause
FROM found WHERE g.id = found.id
RETURNING g.id;

-- name: cancel_group
-- Zero rows: it was cancelled before.
UPDATE task_group SET cancelled_at = clock_timestamp() WHERE id = %(group)s AND cancelled_at IS NULL RETURNING id;

-- name: read_closing
-- Cancelled groups that may still have members to stop.
SELECT id FROM task_group WHERE cancelled_at IS NOT NULL AND closed_at IS NULL ORDER BY id LIMIT %(groups_max)s;

-- name: waiting_members
SELECT t.id, t.state, t.links FROM task_payload p JOIN task t ON t.id = p.task_id
WHERE p.group_id = ANY(%(groups)s::bigint[]) AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying');

-- name: cancel_members
-- One that is just being started or moved is left: the sweep comes back until none is left.
UPDATE task t SET state = 'cancelled', due_at = NULL, finished_at = clock_timestamp()
FROM (
    SELECT id FROM task
    WHERE id = ANY(%(tasks)s::bigint[]) AND state IN ('blocked', 'scheduled', 'ready', 'retrying')
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
) found
WHERE t.id = found.id
RETURNING t.id, t.links;

-- name: tell_members
-- Tell the running members to stop; the first request stands.
UPDATE lease l SET cancel_requested_at = clock_timestamp()
FROM (
    SELECT l.lease_id FROM task_payload p JOIN lease l ON l.task_id = p.task_id
    WHERE p.group_id = ANY(%(groups)s::bigint[]) AND l.cancel_requested_at IS NULL
    ORDER BY l.lease_id FOR NO KEY UPDATE OF l SKIP LOCKED
) found
WHERE l.lease_id = found.lease_id
RETURNING l.task_id;

-- name: close_groups
-- Nobody is left to be stopped: none waits, and those that run have been told.
UPDATE task_group g SET closed_at = clock_timestamp()
WHERE g.id = ANY(%(groups)s::bigint[]) AND g.closed_at IS NULL AND NOT EXISTS (
    SELECT FROM task_payload p JOIN task t ON t.id = p.task_id
    WHERE p.group_id = g.id AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying', 'running')
);

-- name: reopen_groups
-- Members joined: a group that was cancelled and closed before they did has somebody to stop again.
UPDATE task_group SET closed_at = NULL WHERE id = ANY(%(groups)s::bigint[]) AND closed_at IS NOT NULL;
