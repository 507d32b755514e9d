-- name: read_resources
SELECT r.id, r.name, r.kind, s.level, extract(epoch FROM s.level_at)::float8, r.rate, r.burst, r.permits, r.margin,
       s.factor, extract(epoch FROM s.blocked_until)::float8, r.version, s.taken_total
FROM resource r JOIN resource_state s ON s.resource_id = r.id
WHERE %(names)s::text[] IS NULL OR r.name = ANY(%(names)s)
ORDER BY r.name;

-- name: add_resource
-- A new bucket starts full, less its margin. Zero rows: the name is taken.
WITH added AS (
    INSERT INTO resource (name, kind, rate, burst, permits, margin)
    VALUES (%(name)s, %(kind)s, %(rate)s, %(burst)s, %(permits)s, %(margin)s)
    ON CONFLICT (name) DO NOTHING
    RETURNING id, burst, margin
)
INSERT INTO resource_state (resource_id, level, level_at)
SELECT id, burst * (1 - margin), clock_timestamp() FROM added
RETURNING resource_id;

-- name: edit_resource
-- Zero rows: the version moved on, or there is no such resource. What the old rate refilled until now stays; the new
-- rate counts from here, not from the last draw.
WITH declared AS (
    SELECT id, rate, burst, margin FROM resource WHERE name = %(name)s AND version = %(version)s FOR NO KEY UPDATE
),
edited AS (
    UPDATE resource r SET rate = %(rate)s, burst = %(burst)s, permits = %(permits)s, margin = %(margin)s,
                          version = r.version + 1
    FROM declared d WHERE r.id = d.id
    RETURNING r.id, r.version, r.burst * (1 - r.margin) AS capacity
),
dated AS (
    UPDATE resource_state s
    SET level = least(e.capacity, d.burst * (1 - d.margin), s.level + d.rate * (1 - d.margin) * s.factor
                      * greatest(0, extract(epoch FROM moment.now - s.level_at)::float8)),
        level_at = moment.now
    FROM declared d JOIN edited e ON e.id = d.id CROSS JOIN (SELECT clock_timestamp() AS now) moment
    WHERE s.resource_id = d.id
)
SELECT version FROM edited;

-- name: held_by_resource
-- What live leases hold, by resource.
SELECT d.resource_ids[i.n], sum(l.amounts[i.n])
FROM lease l JOIN demand d ON d.id = l.demand_id
CROSS JOIN LATERAL generate_subscripts(d.resource_ids, 1) AS i(n)
GROUP BY 1;
