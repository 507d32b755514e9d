-- name: read_resources
-- What is in force and what is left of it; what is declared, and the override while it lasts; then what calls taught, and
-- who paused it.
SELECT r.id, r.name, r.kind, s.level, extract(epoch FROM s.level_at)::float8, f.rate, f.burst, f.permits, r.margin,
       s.factor, extract(epoch FROM s.blocked_until)::float8, r.version, s.taken_total,
       r.rate, r.burst, r.permits, r.ceilings::text,
       r.override_until IS NULL OR r.override_until > clock_timestamp(),
       r.override_rate, r.override_burst, r.override_permits, extract(epoch FROM r.override_until)::float8,
       extract(epoch FROM s.paused_at)::float8, s.paused_by, s.pause_reason, extract(epoch FROM s.open_until)::float8,
       s.opens, (SELECT l.lease_id FROM lease l WHERE l.lease_id = s.probe_lease AND s.open_until IS NOT NULL),
       extract(epoch FROM s.breaker_at)::float8, extract(epoch FROM s.window_at)::float8, s.good, s.bad, s.good_before,
       s.bad_before, s.slowest_s
FROM resource r JOIN resource_in_force f ON f.id = r.id JOIN resource_state s ON s.resource_id = r.id
WHERE %(names)s::text[] IS NULL OR r.name = ANY(%(names)s)
ORDER BY r.name;

-- name: add_resource
-- A new bucket starts full, less its margin. Zero rows: the name is taken.
WITH added AS (
    INSERT INTO resource (name, kind, rate, burst, permits, margin, ceilings)
    VALUES (%(name)s, %(kind)s, %(rate)s, %(burst)s, %(permits)s, %(margin)s, %(ceilings)s::jsonb)
    ON CONFLICT (name) DO NOTHING
    RETURNING id, burst, margin
)
INSERT INTO resource_state (resource_id, level, level_at)
SELECT id, burst * (1 - margin), clock_timestamp() FROM added
RETURNING resource_id;

-- name: date_level
-- Before a limit is changed: what the rate in force refilled until now stays, and what follows counts from here, not from
-- the last draw.
UPDATE resource_state s
SET level = least(f.burst * (1 - f.margin), s.level + f.rate * (1 - f.margin) * s.factor
                  * greatest(0, extract(epoch FROM moment.now - s.level_at)::float8)),
    level_at = moment.now
FROM resource_in_force f CROSS JOIN (SELECT clock_timestamp() AS now) moment
WHERE s.resource_id = f.id AND f.name = %(name)s;

-- name: edit_resource
-- Zero rows: the version moved on, or there is no such resource.
UPDATE resource
SET rate = %(rate)s, burst = %(burst)s, permits = %(permits)s, margin = %(margin)s, ceilings = %(ceilings)s::jsonb,
    version = version + 1
WHERE name = %(name)s AND version = %(version)s
RETURNING version;

-- name: set_override
-- Goes before what is declared until its time comes; all NULL lifts it. Zero rows: the version (NULL: any) moved on.
UPDATE resource
SET override_rate = %(rate)s, override_burst = %(burst)s, override_permits = %(permits)s,
    override_until = to_timestamp(%(until)s), version = version + 1
WHERE name = %(name)s AND (%(version)s::bigint IS NULL OR version = %(version)s::bigint)
RETURNING version;

-- name: held_by_resource
-- What live leases hold, by resource.
SELECT d.resource_ids[i.n], sum(l.amounts[i.n])
FROM lease l JOIN demand d ON d.id = l.demand_id
CROSS JOIN LATERAL generate_subscripts(d.resource_ids, 1) AS i(n)
GROUP BY 1;

-- name: touch_resource
-- Something about a limit was changed by a person; the new version.
UPDATE resource SET version = version + 1 WHERE name = %(name)s RETURNING version;

-- name: holders
-- Who holds a limit, longest first. Leases are as many as attempts run.
SELECT l.task_id, p.name, t.slug, l.priority, l.amounts[array_position(d.resource_ids, %(resource)s::bigint)],
       extract(epoch FROM l.started_at)::float8
FROM lease l
JOIN demand d ON d.id = l.demand_id AND %(resource)s::bigint = ANY(d.resource_ids)
JOIN pool p ON p.id = l.pool_id
JOIN tenant t ON t.id = l.tenant_id
ORDER BY l.started_at, l.lease_id
LIMIT %(rows_max)s;

-- name: waiters
-- Ready tasks that need a limit, by pool and class. Cost grows with lanes, not with tasks.
SELECT p.name, c.priority, sum(c.n)::bigint
FROM (SELECT pool_id, priority, demand_id, n FROM task_count WHERE counter = 'ready'
      UNION ALL
      SELECT pool_id, priority, demand_id, n FROM task_change WHERE counter = 'ready') AS c
JOIN demand d ON d.id = c.demand_id AND %(resource)s::bigint = ANY(d.resource_ids)
JOIN pool p ON p.id = c.pool_id
GROUP BY 1, 2 HAVING sum(c.n) > 0
ORDER BY 2, 3 DESC, 1;
