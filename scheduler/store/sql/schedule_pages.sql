-- name: list_schedules
-- Schedules above an id, each with its newest occurrence; `stands` is '', active, paused or faulty.
SELECT s.id, s.tenant_id, n.slug, s.name, s.cron, s.time_zone, s.task::text, s.overlap, s.catch_up,
       extract(epoch FROM s.next_at)::float8, s.last_task_id, extract(epoch FROM s.paused_at)::float8, s.paused_by,
       s.pause_reason, s.fault, s.version, extract(epoch FROM o.nominal_at)::float8, o.fate, o.reason, o.task_id, t.state,
       extract(epoch FROM o.decided_at)::float8
FROM schedule s
JOIN tenant n ON n.id = s.tenant_id
LEFT JOIN LATERAL (SELECT * FROM occurrence o WHERE o.schedule_id = s.id ORDER BY o.nominal_at DESC LIMIT 1) o ON true
LEFT JOIN task t ON t.id = o.task_id
WHERE s.id > %(after)s AND (%(tenant)s::bigint IS NULL OR s.tenant_id = %(tenant)s)
  AND CASE %(stands)s::text WHEN '' THEN true WHEN 'paused' THEN s.paused_at IS NOT NULL
           WHEN 'faulty' THEN s.paused_at IS NULL AND s.fault <> '' ELSE s.paused_at IS NULL AND s.fault = '' END
ORDER BY s.id
LIMIT %(rows_max)s;

-- name: one_schedule
SELECT s.id, s.tenant_id, n.slug, s.name, s.cron, s.time_zone, s.task::text, s.overlap, s.catch_up,
       extract(epoch FROM s.next_at)::float8, s.last_task_id, extract(epoch FROM s.paused_at)::float8, s.paused_by,
       s.pause_reason, s.fault, s.version
FROM schedule s JOIN tenant n ON n.id = s.tenant_id
WHERE s.id = %(schedule)s;

-- name: schedule_figures
-- How all schedules stand, none counted further than `count_max`.
SELECT (SELECT count(*) FROM (SELECT FROM schedule WHERE paused_at IS NULL AND fault = '' LIMIT %(count_max)s) a),
       (SELECT count(*) FROM (SELECT FROM schedule WHERE paused_at IS NOT NULL LIMIT %(count_max)s) p),
       (SELECT count(*) FROM (SELECT FROM schedule WHERE paused_at IS NULL AND fault <> '' LIMIT %(count_max)s) f),
       (SELECT extract(epoch FROM next_at)::float8 FROM schedule WHERE paused_at IS NULL AND next_at IS NOT NULL
        ORDER BY next_at, id LIMIT 1),
       extract(epoch FROM clock_timestamp())::float8;

-- name: older_occurrences
-- Occurrences of a schedule before a nominal time (NULL: all), newest first.
SELECT extract(epoch FROM o.nominal_at)::float8, o.fate, o.reason, o.task_id, t.state,
       extract(epoch FROM o.decided_at)::float8
FROM occurrence o LEFT JOIN task t ON t.id = o.task_id
WHERE o.schedule_id = %(schedule)s
  AND (%(before)s::float8 IS NULL OR o.nominal_at < to_timestamp(%(before)s::float8))
ORDER BY o.nominal_at DESC
LIMIT %(rows_max)s;
