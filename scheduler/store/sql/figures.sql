-- name: read_attempts_of_pool
-- The newest attempts of a pool that ended lately, and those that run, which end now for this purpose.
SELECT a.priority, a.number, extract(epoch FROM a.ready_at)::float8, extract(epoch FROM a.started_at)::float8,
       extract(epoch FROM a.finished_at)::float8, a.outcome = 'succeeded', false
FROM (SELECT * FROM attempt
      WHERE finished_at > clock_timestamp() - make_interval(secs => %(window_s)s) AND pool_id = %(pool)s
      ORDER BY finished_at DESC LIMIT %(rows_max)s) a
UNION ALL
SELECT l.priority, l.attempt, extract(epoch FROM l.ready_at)::float8, extract(epoch FROM l.started_at)::float8,
       extract(epoch FROM clock_timestamp())::float8, false, true
FROM lease l WHERE l.pool_id = %(pool)s;

-- name: read_fixed_starts_of_pool
-- Starts that are promised: how many are ahead within the horizon, for how many a slot is held now, and of those of the
-- window that have begun or should have, how many there were and how many began in time.
SELECT count(*) FILTER (WHERE f.starts_at > m.now AND f.starts_at <= m.now + make_interval(secs => %(horizon_s)s)),
       count(*) FILTER (WHERE f.held_from <= m.now AND t.state IN ('scheduled', 'ready') AND t.attempts = 0),
       count(*) FILTER (WHERE f.starts_at <= m.now),
       count(*) FILTER (WHERE f.starts_at <= m.now
                        AND s.started_at <= f.starts_at + make_interval(secs => f.tolerance_s))
FROM fixed_start f
CROSS JOIN (SELECT clock_timestamp() AS now) m
LEFT JOIN task t ON t.id = f.task_id
LEFT JOIN LATERAL (
    SELECT least((SELECT min(a.started_at) FROM attempt a WHERE a.task_id = f.task_id),
                 (SELECT l.started_at FROM lease l WHERE l.task_id = f.task_id)) AS started_at
) s ON f.starts_at <= m.now
WHERE f.pool_id = %(pool)s AND f.starts_at > m.now - make_interval(secs => %(window_s)s);
