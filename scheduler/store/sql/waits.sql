-- name: observed_waits
-- How long first attempts of the last hour waited, by pool and class: number and p90 of the last five minutes, number and
-- p90 of the hour, and how many of the hour stayed within what their class may wait (NULL: nothing was set). Of each
-- of the last five minutes and of every fifth before so many attempts are looked at and no more, those that ended last:
-- an hour of any traffic costs the same.
SELECT p.name, w.priority, count(*) FILTER (WHERE w.recent),
       percentile_cont(0.9) WITHIN GROUP (ORDER BY w.wait_s) FILTER (WHERE w.recent),
       count(*), percentile_cont(0.9) WITHIN GROUP (ORDER BY w.wait_s),
       CASE WHEN p.slo ? w.label THEN count(*) FILTER (WHERE w.wait_s <= (p.slo ->> w.label)::float8) END
FROM (
    SELECT s.pool_id, s.priority, (%(labels)s::text[])[s.priority + 1] AS label, s.started_at > now() - interval '5 min' AS recent,
           greatest(0, extract(epoch FROM s.started_at - s.ready_at))::float8 AS wait_s
    FROM (
        SELECT a.pool_id, a.priority, a.ready_at, a.started_at
        FROM (SELECT generate_series(0, 4) UNION ALL SELECT generate_series(5, 55, 5)) AS m(n)
        CROSS JOIN LATERAL (
            SELECT e.pool_id, e.priority, e.ready_at, e.started_at, e.number FROM attempt e
            WHERE e.finished_at > now() - make_interval(mins => m.n + 1) AND e.finished_at <= now() - make_interval(mins => m.n)
            ORDER BY e.finished_at DESC LIMIT %(each_minute_max)s
        ) a
        WHERE a.number = 1
        UNION ALL
        (SELECT l.pool_id, l.priority, l.ready_at, l.started_at FROM lease l
         WHERE l.attempt = 1 AND l.started_at > now() - interval '1 h'
         ORDER BY l.lease_id DESC LIMIT %(running_max)s)
    ) s
) w
JOIN pool p ON p.id = w.pool_id
GROUP BY p.name, p.slo, w.priority, w.label
ORDER BY 1, 2;
