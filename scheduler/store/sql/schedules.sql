-- name: add_schedule
-- Zero rows: the tenant has one of that name.
INSERT INTO schedule (tenant_id, name, cron, time_zone, task, overlap, catch_up, next_at, paused_by, pause_reason)
VALUES (%(tenant)s, %(name)s, %(cron)s, %(time_zone)s, %(task)s::jsonb, %(overlap)s, %(catch_up)s,
        to_timestamp(%(next_at)s), '', '')
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING id;

-- name: count_schedules
SELECT count(*) FROM schedule WHERE tenant_id = %(tenant)s;

-- name: read_schedules
-- By id, a page; every filter is optional.
SELECT s.id, s.tenant_id, t.slug, s.name, s.cron, s.time_zone, s.task::text, s.overlap, s.catch_up,
       extract(epoch FROM s.next_at)::float8, s.last_task_id, extract(epoch FROM s.paused_at)::float8, s.paused_by,
       s.pause_reason, s.fault, s.version
FROM schedule s JOIN tenant t ON t.id = s.tenant_id
WHERE s.id > %(after)s AND (%(tenant)s::bigint IS NULL OR s.tenant_id = %(tenant)s)
  AND (%(name)s::text IS NULL OR s.name = %(name)s)
ORDER BY s.id
LIMIT %(rows_max)s;

-- name: lock_schedule
SELECT id FROM schedule WHERE tenant_id = %(tenant)s AND name = %(name)s FOR UPDATE;

-- name: edit_schedule
-- Zero rows: the version moved on.
UPDATE schedule
SET cron = %(cron)s, time_zone = %(time_zone)s, task = %(task)s::jsonb, overlap = %(overlap)s,
    catch_up = %(catch_up)s, next_at = to_timestamp(%(next_at)s), fault = '', faulted_at = NULL, version = version + 1
WHERE id = %(schedule)s AND version = %(version)s
RETURNING version;

-- name: pause_schedule
-- Zero rows: it is paused already.
UPDATE schedule SET paused_at = clock_timestamp(), paused_by = %(actor)s, pause_reason = %(reason)s, version = version + 1
WHERE id = %(schedule)s AND paused_at IS NULL
RETURNING version;

-- name: resume_schedule
-- What came before the pause is forgotten: a failed occurrence does not keep the next from running.
UPDATE schedule
SET paused_at = NULL, paused_by = '', pause_reason = '', last_task_id = NULL, fault = '', faulted_at = NULL,
    version = version + 1
WHERE id = %(schedule)s AND paused_at IS NOT NULL
RETURNING version;

-- name: remove_schedule
WITH gone AS (DELETE FROM occurrence WHERE schedule_id = %(schedule)s)
DELETE FROM schedule WHERE id = %(schedule)s RETURNING id;

-- name: read_due
-- Schedules with something to decide: a nominal time that has come, or an occurrence that waits. One that could not be
-- decided rests meanwhile, so that any number of broken ones keep no other from its time.
(SELECT id FROM schedule
 WHERE paused_at IS NULL AND next_at <= statement_timestamp()
   AND (faulted_at IS NULL OR faulted_at < statement_timestamp() - make_interval(secs => %(rest_s)s))
 ORDER BY next_at, id LIMIT %(rows_max)s)
UNION
(SELECT DISTINCT o.schedule_id FROM occurrence o JOIN schedule s ON s.id = o.schedule_id
 WHERE o.fate = 'queued' AND s.paused_at IS NULL
   AND (s.faulted_at IS NULL OR s.faulted_at < statement_timestamp() - make_interval(secs => %(rest_s)s))
   AND NOT EXISTS (SELECT FROM task t WHERE t.id = s.last_task_id
                   AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying', 'running'))
 LIMIT %(rows_max)s);

-- name: next_nominal
-- Now, and the next time at which an occurrence has to be decided; schedules that could not be decided are not waited for.
SELECT extract(epoch FROM clock_timestamp())::float8,
       (SELECT extract(epoch FROM next_at)::float8 FROM schedule
        WHERE paused_at IS NULL AND next_at IS NOT NULL AND faulted_at IS NULL ORDER BY next_at, id LIMIT 1);

-- name: lock_due
-- One schedule, unless somebody else has it or it is not active any more, with the time and the state of its last task.
SELECT s.id, s.tenant_id, s.name, s.cron, s.time_zone, s.task::text, s.overlap, s.catch_up,
       extract(epoch FROM s.next_at)::float8, s.last_task_id, extract(epoch FROM clock_timestamp())::float8,
       (SELECT state FROM task WHERE id = s.last_task_id)
FROM schedule s
WHERE s.id = %(schedule)s AND s.paused_at IS NULL
FOR UPDATE OF s SKIP LOCKED;

-- name: read_waiting
-- Occurrences of a schedule that wait for the one before them, oldest first.
SELECT extract(epoch FROM nominal_at)::float8 FROM occurrence
WHERE schedule_id = %(schedule)s AND fate = 'queued'
ORDER BY nominal_at;

-- name: insert_occurrences
-- Once each: a nominal time missing from the result was decided before.
INSERT INTO occurrence (schedule_id, nominal_at, fate, reason, task_id, decided_at)
SELECT %(schedule)s, to_timestamp(n.nominal_at), n.fate, n.reason, n.task_id, clock_timestamp()
FROM unnest(%(nominals)s::float8[], %(fates)s::text[], %(reasons)s::text[], %(tasks)s::bigint[])
     AS n(nominal_at, fate, reason, task_id)
ON CONFLICT (schedule_id, nominal_at) DO NOTHING
RETURNING extract(epoch FROM nominal_at)::float8;

-- name: decide_waiting
UPDATE occurrence SET fate = %(fate)s, reason = %(reason)s, task_id = %(task)s, decided_at = clock_timestamp()
WHERE schedule_id = %(schedule)s AND nominal_at = to_timestamp(%(nominal)s) AND fate = 'queued';

-- name: advance
UPDATE schedule SET next_at = to_timestamp(%(next_at)s), last_task_id = %(last_task)s, fault = '', faulted_at = NULL
WHERE id = %(schedule)s;

-- name: note_fault
-- Its times stay as they are: what could not be decided is late, not lost.
UPDATE schedule SET fault = %(fault)s, faulted_at = clock_timestamp() WHERE id = %(schedule)s;

-- name: newest_decided
SELECT extract(epoch FROM max(nominal_at))::float8 FROM occurrence WHERE schedule_id = %(schedule)s;

-- name: read_occurrences
-- The newest occurrences of a schedule.
SELECT extract(epoch FROM o.nominal_at)::float8, o.fate, o.reason, o.task_id, t.state,
       extract(epoch FROM o.decided_at)::float8
FROM occurrence o LEFT JOIN task t ON t.id = o.task_id
WHERE o.schedule_id = %(schedule)s
ORDER BY o.nominal_at DESC
LIMIT %(rows_max)s;

-- name: forget_occurrences
-- Old ones, but never the newest decided one of a schedule: it bounds what comes next.
DELETE FROM occurrence o
WHERE o.id IN (SELECT id FROM occurrence WHERE decided_at < clock_timestamp() - make_interval(secs => %(keep_s)s)
                 AND fate <> 'queued' ORDER BY decided_at LIMIT %(rows_max)s)
  AND o.nominal_at < (SELECT max(n.nominal_at) FROM occurrence n WHERE n.schedule_id = o.schedule_id);
