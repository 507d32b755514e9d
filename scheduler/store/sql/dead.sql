-- name: read_dying
-- What is not known of these tasks where their ends are decided, as far as they have really died.
SELECT id, kind FROM task WHERE id = ANY(%(tasks)s::bigint[]) AND state IN ('dead_lettered', 'failed');

-- name: bury
INSERT INTO dead_letter (task_id, fingerprint, tenant_id, pool_id, kind, failure_class, message, died_at)
SELECT v.task_id, v.fingerprint, v.tenant_id, v.pool_id, v.kind, v.failure_class, v.message, clock_timestamp()
FROM unnest(%(tasks)s::bigint[], %(fingerprints)s::bigint[], %(tenants)s::bigint[], %(pools)s::bigint[],
            %(kinds)s::text[], %(classes)s::text[], %(messages)s::text[])
     AS v(task_id, fingerprint, tenant_id, pool_id, kind, failure_class, message)
ORDER BY v.task_id
ON CONFLICT (task_id) DO NOTHING;

-- name: discard
UPDATE dead_letter SET discarded_at = clock_timestamp()
WHERE task_id = ANY(%(tasks)s::bigint[]) AND discarded_at IS NULL
RETURNING task_id;

-- name: restore
UPDATE dead_letter SET discarded_at = NULL
WHERE task_id = ANY(%(tasks)s::bigint[]) AND discarded_at IS NOT NULL
RETURNING task_id;

-- name: read_letter
SELECT fingerprint, failure_class, message, extract(epoch FROM died_at)::float8, extract(epoch FROM discarded_at)::float8
FROM dead_letter WHERE task_id = %(task)s;

-- name: take_deltas
-- Some of the changes to the counts; whoever folds at the same time takes others.
WITH taken AS (
    DELETE FROM dead_delta
    WHERE id IN (SELECT id FROM dead_delta ORDER BY id LIMIT %(rows_max)s FOR UPDATE SKIP LOCKED)
    RETURNING fingerprint, n, died, died_at
)
SELECT fingerprint, sum(n)::bigint, sum(died)::bigint, extract(epoch FROM date_trunc('hour', died_at, 'UTC'))::float8,
       extract(epoch FROM min(died_at))::float8, extract(epoch FROM max(died_at))::float8
FROM taken GROUP BY fingerprint, date_trunc('hour', died_at, 'UTC')
ORDER BY fingerprint;

-- name: read_new_groups
-- Of fingerprints that no group has yet: one who died so.
SELECT f.fingerprint, d.tenant_id, d.pool_id, d.kind, d.failure_class, d.message
FROM unnest(%(fingerprints)s::bigint[]) AS f(fingerprint)
CROSS JOIN LATERAL (
    SELECT * FROM dead_letter d WHERE d.fingerprint = f.fingerprint AND d.discarded_at IS NULL ORDER BY d.id LIMIT 1) d
WHERE NOT EXISTS (SELECT FROM dead_group g WHERE g.fingerprint = f.fingerprint)
ORDER BY f.fingerprint;

-- name: add_groups
INSERT INTO dead_group (fingerprint, tenant_id, pool_id, kind, failure_class, shape, n, first_at, last_at)
SELECT v.fingerprint, v.tenant_id, v.pool_id, v.kind, v.failure_class, v.shape, 0, clock_timestamp(), clock_timestamp()
FROM unnest(%(fingerprints)s::bigint[], %(tenants)s::bigint[], %(pools)s::bigint[], %(kinds)s::text[],
            %(classes)s::text[], %(shapes)s::text[])
     AS v(fingerprint, tenant_id, pool_id, kind, failure_class, shape)
ON CONFLICT (fingerprint) DO NOTHING;

-- name: fold_groups
-- A group that was empty begins anew: it was seen first when the first came that is there now.
UPDATE dead_group g
SET n = g.n + v.n,
    first_at = CASE WHEN g.n <= 0 AND v.first_at IS NOT NULL THEN to_timestamp(v.first_at)
                    ELSE least(g.first_at, to_timestamp(v.first_at)) END,
    last_at = CASE WHEN g.n <= 0 AND v.last_at IS NOT NULL THEN to_timestamp(v.last_at)
                   ELSE greatest(g.last_at, to_timestamp(v.last_at)) END
FROM unnest(%(fingerprints)s::bigint[], %(numbers)s::bigint[], %(firsts)s::float8[], %(lasts)s::float8[])
     AS v(fingerprint, n, first_at, last_at)
WHERE g.fingerprint = v.fingerprint;

-- name: fold_hours
INSERT INTO dead_hour (fingerprint, hour, n)
SELECT v.fingerprint, to_timestamp(v.hour), v.n
FROM unnest(%(fingerprints)s::bigint[], %(hours)s::float8[], %(numbers)s::bigint[]) AS v(fingerprint, hour, n)
ON CONFLICT (fingerprint, hour) DO UPDATE SET n = dead_hour.n + excluded.n;

-- name: list_groups
-- Groups by when the last one died, newest first. NULL: any.
SELECT g.fingerprint, t.slug, p.name, g.kind, g.failure_class, g.shape,
       g.n + coalesce((SELECT sum(d.n) FROM dead_delta d WHERE d.fingerprint = g.fingerprint), 0)::bigint,
       extract(epoch FROM g.first_at)::float8, extract(epoch FROM g.last_at)::float8
FROM dead_group g JOIN tenant t ON t.id = g.tenant_id JOIN pool p ON p.id = g.pool_id
WHERE g.n > 0
  AND (%(before)s::float8 IS NULL OR (g.last_at, g.fingerprint) < (to_timestamp(%(before)s), %(before_fingerprint)s))
  AND (%(tenant)s::bigint IS NULL OR g.tenant_id = %(tenant)s)
  AND (%(tenants)s::text[] IS NULL OR t.slug = ANY(%(tenants)s))
  AND (%(pools)s::text[] IS NULL OR p.name = ANY(%(pools)s))
  AND (%(kinds)s::text[] IS NULL OR g.kind = ANY(%(kinds)s))
  AND (%(reasons)s::text[] IS NULL OR g.failure_class = ANY(%(reasons)s))
ORDER BY g.last_at DESC, g.fingerprint DESC
LIMIT %(rows_max)s;

-- name: read_group
SELECT g.fingerprint, t.slug, p.name, g.kind, g.failure_class, g.shape,
       g.n + coalesce((SELECT sum(d.n) FROM dead_delta d WHERE d.fingerprint = g.fingerprint), 0)::bigint,
       extract(epoch FROM g.first_at)::float8, extract(epoch FROM g.last_at)::float8
FROM dead_group g JOIN tenant t ON t.id = g.tenant_id JOIN pool p ON p.id = g.pool_id
WHERE g.fingerprint = %(fingerprint)s;

-- name: read_hours
SELECT fingerprint, extract(epoch FROM hour)::float8, n FROM dead_hour
WHERE fingerprint = ANY(%(fingerprints)s::bigint[]) AND hour > clock_timestamp() - make_interval(hours => %(hours)s);

-- name: newest_of_groups
-- The newest dead letter of each: its task and message.
SELECT f.fingerprint, d.task_id, d.message
FROM unnest(%(fingerprints)s::bigint[]) AS f(fingerprint)
CROSS JOIN LATERAL (
    SELECT task_id, message FROM dead_letter d
    WHERE d.fingerprint = f.fingerprint AND d.discarded_at IS NULL ORDER BY d.id DESC LIMIT 1) d;

-- name: newest_death
SELECT extract(epoch FROM max(last_at))::float8 FROM dead_group;

-- name: find_discarded
-- Tasks that were discarded before the time, as far as nothing else has need of them.
SELECT d.task_id FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NOT NULL AND d.discarded_at < to_timestamp(%(before)s)
  AND NOT EXISTS (SELECT FROM schedule s WHERE s.last_task_id = d.task_id)
  AND NOT EXISTS (SELECT FROM task_payload p JOIN run r ON r.id = p.run_id
                  WHERE p.task_id = d.task_id AND r.finished_at IS NULL)
  AND NOT (t.links & %(children)s <> 0 AND EXISTS (
      SELECT FROM task_edge e JOIN task c ON c.id = e.child_id
      WHERE e.parent_id = d.task_id AND e.met IS NOT NULL
        AND c.state IN ('blocked', 'scheduled', 'ready', 'retrying', 'running')))
ORDER BY d.id LIMIT %(rows_max)s;

-- name: forget_hours
DELETE FROM dead_hour WHERE hour < to_timestamp(%(before)s);

-- name: forget_groups
-- Groups that nobody is in any more.
DELETE FROM dead_group g
WHERE g.n <= 0 AND g.last_at < to_timestamp(%(before)s)
  AND NOT EXISTS (SELECT FROM dead_delta d WHERE d.fingerprint = g.fingerprint)
  AND NOT EXISTS (SELECT FROM dead_letter d WHERE d.fingerprint = g.fingerprint AND d.discarded_at IS NULL);

-- name: read_listed
-- Tasks as a list shows them.
SELECT t.id, tenant.slug, pool.name, t.kind, t.priority, t.state, t.key, t.attempts, t.max_attempts, t.replays,
       extract(epoch FROM t.created_at)::float8, extract(epoch FROM t.ready_at)::float8,
       extract(epoch FROM t.due_at)::float8, extract(epoch FROM t.finished_at)::float8,
       (SELECT extract(epoch FROM l.started_at)::float8 FROM lease l WHERE l.task_id = t.id),
       d.failure_class, d.message, extract(epoch FROM d.discarded_at)::float8,
       (SELECT sum(e.provider_cost_nano)::bigint FROM attempt a JOIN ledger_entry e ON e.lease_id = a.lease_id
        WHERE a.task_id = t.id)
FROM task t JOIN tenant ON tenant.id = t.tenant_id JOIN pool ON pool.id = t.pool_id
LEFT JOIN dead_letter d ON d.task_id = t.id
WHERE t.id = ANY(%(tasks)s::bigint[]);
