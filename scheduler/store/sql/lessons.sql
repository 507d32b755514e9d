-- name: lock_states
-- The rows that a settlement will change, in the same order as the planner locks them; with what they remember of calls.
SELECT resource_id, extract(epoch FROM clock_timestamp())::float8, taken_total, factor, extract(epoch FROM cut_at)::float8, extract(epoch FROM paced_at)::float8,
       paced_taken, extract(epoch FROM open_until)::float8, opens, probe_lease, extract(epoch FROM breaker_at)::float8,
       extract(epoch FROM window_at)::float8, good, bad, good_before, bad_before, slowest_s
FROM resource_state WHERE resource_id = ANY(%(resources)s::bigint[]) ORDER BY resource_id FOR UPDATE;

-- name: store_lessons
-- What calls taught about these limits; their rows are locked. What the pace of before refilled until now stays.
UPDATE resource_state s
SET level = CASE WHEN n.factor = s.factor OR r.kind <> 'token_bucket' THEN s.level
                 ELSE least(r.burst * (1 - r.margin), s.level + r.rate * (1 - r.margin) * s.factor
                            * greatest(0, extract(epoch FROM moment.now - s.level_at)::float8)) END,
    level_at = CASE WHEN n.factor = s.factor THEN s.level_at ELSE moment.now END,
    factor = n.factor, cut_at = to_timestamp(n.cut_at), paced_at = to_timestamp(n.paced_at),
    paced_taken = n.paced_taken, open_until = to_timestamp(n.open_until), opens = n.opens, probe_lease = n.probe_lease,
    breaker_at = to_timestamp(n.breaker_at), window_at = to_timestamp(n.window_at), good = n.good, bad = n.bad,
    good_before = n.good_before, bad_before = n.bad_before, slowest_s = n.slowest_s
FROM unnest(%(resources)s::bigint[], %(factor)s::float8[], %(cut_at)s::float8[], %(paced_at)s::float8[],
            %(paced_taken)s::float8[], %(open_until)s::float8[], %(opens)s::smallint[], %(probe_lease)s::bigint[],
            %(breaker_at)s::float8[], %(window_at)s::float8[], %(good)s::integer[], %(bad)s::integer[],
            %(good_before)s::integer[], %(bad_before)s::integer[], %(slowest_s)s::float8[])
     AS n(resource_id, factor, cut_at, paced_at, paced_taken, open_until, opens, probe_lease, breaker_at, window_at,
          good, bad, good_before, bad_before, slowest_s)
JOIN resource_in_force r ON r.id = n.resource_id
CROSS JOIN (SELECT clock_timestamp() AS now) moment
WHERE s.resource_id = n.resource_id;

-- name: pause
-- Nothing is taken of these limits until somebody lets it. Zero rows: all of them were paused before.
WITH closed AS (
    UPDATE resource_state s SET paused_at = clock_timestamp(), paused_by = %(actor)s, pause_reason = %(reason)s
    WHERE s.resource_id = ANY(%(resources)s::bigint[]) AND s.paused_at IS NULL
    RETURNING s.resource_id
)
UPDATE resource r SET version = r.version + 1 FROM closed c WHERE r.id = c.resource_id RETURNING r.name;

-- name: resume
-- Zero rows: it is not paused.
WITH opened AS (
    UPDATE resource_state s SET paused_at = NULL, paused_by = '', pause_reason = ''
    WHERE s.resource_id = %(resource)s AND s.paused_at IS NOT NULL
    RETURNING s.resource_id
)
UPDATE resource r SET version = r.version + 1 FROM opened o WHERE r.id = o.resource_id RETURNING r.version;
