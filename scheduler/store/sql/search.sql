-- name: numbered
-- Everything that has this number; `tenant` NULL: whoever it belongs to. Operations belong to nobody.
SELECT 'task', t.id::text, coalesce(t.key, t.kind), n.slug, t.state
FROM task t JOIN tenant n ON n.id = t.tenant_id
WHERE t.id = %(number)s AND (%(tenant)s::bigint IS NULL OR t.tenant_id = %(tenant)s)
UNION ALL
SELECT 'run', r.id::text, coalesce(nullif(r.name, ''), r.key, ''), n.slug, r.state
FROM run r JOIN tenant n ON n.id = r.tenant_id
WHERE r.id = %(number)s AND (%(tenant)s::bigint IS NULL OR r.tenant_id = %(tenant)s)
UNION ALL
SELECT 'schedule', s.id::text, s.name, n.slug, CASE WHEN s.paused_at IS NULL THEN 'active' ELSE 'paused' END
FROM schedule s JOIN tenant n ON n.id = s.tenant_id
WHERE s.id = %(number)s AND (%(tenant)s::bigint IS NULL OR s.tenant_id = %(tenant)s)
UNION ALL
SELECT 'operation', o.id::text, o.kind, '', o.state
FROM operation o WHERE o.id = %(number)s AND %(tenant)s::bigint IS NULL;

-- name: keyed
-- Tasks and runs that have exactly this key: one look into an index for each tenant.
WITH owner AS (
    SELECT id, slug FROM tenant WHERE %(tenant)s::bigint IS NULL OR id = %(tenant)s ORDER BY id LIMIT %(tenants_max)s
)
(SELECT 'task', t.id::text, t.key, n.slug, t.state
 FROM owner n JOIN LATERAL (SELECT * FROM task WHERE tenant_id = n.id AND key = %(text)s LIMIT 1) t ON true
 LIMIT %(rows_max)s)
UNION ALL
(SELECT 'run', r.id::text, coalesce(nullif(r.name, ''), r.key), n.slug, r.state
 FROM owner n JOIN LATERAL (SELECT * FROM run WHERE tenant_id = n.id AND key = %(text)s LIMIT 1) r ON true
 LIMIT %(rows_max)s);

-- name: named
-- What has a name that begins so. `prefix` is a pattern of LIKE.
(SELECT 'pool', p.name, p.executor, '', CASE WHEN p.paused_at IS NULL THEN 'running' ELSE 'paused' END
 FROM pool p WHERE p.name LIKE %(prefix)s AND %(tenant)s::bigint IS NULL ORDER BY p.name LIMIT %(rows_max)s)
UNION ALL
(SELECT 'resource', r.name, r.kind, '', CASE WHEN x.paused_at IS NULL THEN '' ELSE 'paused' END
 FROM resource r LEFT JOIN resource_state x ON x.resource_id = r.id
 WHERE r.name LIKE %(prefix)s AND %(tenant)s::bigint IS NULL ORDER BY r.name LIMIT %(rows_max)s)
UNION ALL
(SELECT 'tenant', n.slug, n.name, '', n.status
 FROM tenant n WHERE n.slug LIKE %(prefix)s AND (%(tenant)s::bigint IS NULL OR n.id = %(tenant)s)
 ORDER BY n.slug LIMIT %(rows_max)s)
UNION ALL
(SELECT 'schedule', s.id::text, s.name, n.slug, CASE WHEN s.paused_at IS NULL THEN 'active' ELSE 'paused' END
 FROM schedule s JOIN tenant n ON n.id = s.tenant_id
 WHERE s.name LIKE %(prefix)s AND (%(tenant)s::bigint IS NULL OR s.tenant_id = %(tenant)s)
 ORDER BY s.name LIMIT %(rows_max)s);
