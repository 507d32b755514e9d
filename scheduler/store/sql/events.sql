-- name: add_event
INSERT INTO event_fresh (type, tenant_id, at, data)
VALUES (%(type)s, %(tenant)s, clock_timestamp(), %(data)s::jsonb);

-- name: has_fresh
SELECT EXISTS (SELECT FROM event_fresh);

-- name: lock_mark
-- Places are given by one at a time, in transactions one after the other: what one may not see yet comes later, and gets a
-- later place. No row: another is at it, or there is no mark yet.
SELECT last_seq FROM event_mark WHERE id = 1 FOR UPDATE SKIP LOCKED;

-- name: ensure_mark
INSERT INTO event_mark (id, last_seq, pruned_seq) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING;

-- name: publish_fresh
-- A task's moves are told in their order: the second one waited for the first one's commit, so it has the later id, and
-- whoever sees it sees the first one too.
WITH taken AS (
    DELETE FROM event_fresh WHERE id IN (SELECT id FROM event_fresh ORDER BY id LIMIT %(events_max)s)
    RETURNING *
),
published AS (
    INSERT INTO event (seq, type, tenant_id, task_id, pool_id, before, attempt, kind, key, at, data)
    SELECT %(last_seq)s::bigint + row_number() OVER (ORDER BY id), type, tenant_id, task_id, pool_id, before, attempt,
           kind, key, at, data
    FROM taken
    RETURNING seq
)
UPDATE event_mark SET last_seq = coalesce((SELECT max(seq) FROM published), last_seq) WHERE id = 1
RETURNING last_seq - %(last_seq)s::bigint;

-- name: read_newest
-- The newest place, and the newest of each tenant beyond one that is known.
SELECT (SELECT last_seq FROM event_mark WHERE id = 1),
       (SELECT json_object_agg(coalesce(tenant_id, 0), newest) FROM (
            SELECT tenant_id, max(seq) AS newest FROM event WHERE seq > %(after)s GROUP BY 1) AS told)::text;

-- name: read_events
SELECT e.seq, e.type, e.task_id, tenant.slug, pool.name, e.before, e.attempt, e.kind, e.key,
       extract(epoch FROM e.at)::float8, e.data::text
FROM (SELECT * FROM event WHERE seq > %(after)s ORDER BY seq LIMIT %(events_max)s) e
LEFT JOIN tenant ON tenant.id = e.tenant_id LEFT JOIN pool ON pool.id = e.pool_id
ORDER BY e.seq;

-- name: read_events_of_tenant
SELECT e.seq, e.type, e.task_id, tenant.slug, pool.name, e.before, e.attempt, e.kind, e.key,
       extract(epoch FROM e.at)::float8, e.data::text
FROM (SELECT * FROM event WHERE tenant_id = %(tenant)s AND seq > %(after)s ORDER BY seq LIMIT %(events_max)s) e
LEFT JOIN tenant ON tenant.id = e.tenant_id LEFT JOIN pool ON pool.id = e.pool_id
ORDER BY e.seq;

-- name: read_alerts
-- Alerts beyond a place: of one tenant, or of all and of none in particular for NULL.
SELECT e.seq, e.type, e.task_id, tenant.slug, pool.name, e.before, e.attempt, e.kind, e.key,
       extract(epoch FROM e.at)::float8, e.data::text
FROM (SELECT * FROM event
      WHERE type LIKE 'alert.%%' AND seq > %(after)s AND (%(tenant)s::bigint IS NULL OR tenant_id = %(tenant)s)
      ORDER BY seq LIMIT %(events_max)s) e
LEFT JOIN tenant ON tenant.id = e.tenant_id LEFT JOIN pool ON pool.id = e.pool_id
ORDER BY e.seq;

-- name: listen
-- From now on, or for longer: the transitions of this tenant's tasks (0: of all) are told.
INSERT INTO event_listener AS l (tenant_id, until, from_seq)
SELECT %(tenant)s, CASE WHEN %(seconds)s::float8 IS NULL THEN 'infinity'
                        ELSE clock_timestamp() + make_interval(secs => %(seconds)s::float8) END,
       coalesce((SELECT last_seq FROM event_mark WHERE id = 1), 0)
ON CONFLICT (tenant_id) DO UPDATE
SET until = greatest(l.until, excluded.until),
    from_seq = CASE WHEN l.until < clock_timestamp() THEN excluded.from_seq ELSE l.from_seq END;

-- name: listen_no_longer
-- No webhook of the tenant (0: of all) is left that wants transitions: tell them as long as a listener may take to come back.
UPDATE event_listener SET until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
WHERE tenant_id = %(tenant)s AND until = 'infinity'
  AND NOT EXISTS (SELECT FROM webhook w
                  WHERE coalesce(w.tenant_id, 0) = %(tenant)s AND w.standing <> 'disabled'
                    AND EXISTS (SELECT FROM unnest(w.events) name WHERE name LIKE 'task.%%'));

-- name: read_bounds
-- The newest place; the place from which on everything of this tenant was told and is still kept; that from which on all
-- alerts are, which are told whoever listens.
SELECT coalesce(m.last_seq, 0),
       greatest(coalesce(m.pruned_seq, 0),
                coalesce((SELECT min(from_seq) FROM event_listener
                          WHERE tenant_id IN (0, %(tenant)s) AND until > clock_timestamp()), coalesce(m.last_seq, 0))),
       coalesce(m.pruned_alert_seq, 0)
FROM (SELECT 1) AS one LEFT JOIN event_mark m ON m.id = 1;

-- name: forget_listeners
DELETE FROM event_listener WHERE until < clock_timestamp();

-- name: forget_events
-- The oldest, when they are too old or too many. From then on whoever has read less is told that something is missing.
WITH oldest AS (
    SELECT seq FROM event ORDER BY seq LIMIT %(rows_max)s
),
gone AS (
    DELETE FROM event e USING oldest o, event_mark m
    WHERE e.seq = o.seq AND m.id = 1
      AND (e.seq <= m.last_seq - %(events_max)s OR e.at < clock_timestamp() - make_interval(secs => %(keep_s)s))
    RETURNING e.seq, e.type
)
UPDATE event_mark
SET pruned_seq = (SELECT max(seq) FROM gone),
    pruned_alert_seq = greatest(pruned_alert_seq, (SELECT max(seq) FROM gone WHERE type LIKE 'alert.%%'))
WHERE id = 1 AND EXISTS (SELECT FROM gone);
