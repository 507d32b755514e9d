-- name: add_operation
-- NULL: this actor has used the key before.
INSERT INTO operation (kind, state, filter, tenant_id, as_of, actor, source, reason, key, rate, total, starts_at)
VALUES (%(kind)s, 'starting', %(filter)s, %(tenant)s, to_timestamp(%(as_of)s), %(actor)s, %(source)s, %(reason)s, %(key)s,
        %(rate)s, 0, clock_timestamp() + make_interval(secs => %(after_s)s))
ON CONFLICT (actor, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: find_by_key
SELECT id FROM operation WHERE actor = %(actor)s AND key = %(key)s;

-- name: set_total
UPDATE operation SET total = %(total)s WHERE id = %(operation)s;

-- name: read_operations
-- Newest first; NULL: any.
SELECT o.id, o.kind, o.state, o.filter, o.tenant_id, o.actor, o.source, o.reason, o.rate, o.total, o.applied, o.skipped,
       extract(epoch FROM o.as_of)::float8, extract(epoch FROM o.created_at)::float8,
       extract(epoch FROM o.starts_at)::float8, extract(epoch FROM o.worked_at)::float8,
       extract(epoch FROM o.finished_at)::float8, o.version
FROM operation o
WHERE (%(operation)s::bigint IS NULL OR o.id = %(operation)s)
  AND (%(tenant)s::bigint IS NULL OR o.tenant_id = %(tenant)s)
  AND (%(before)s::bigint IS NULL OR o.id < %(before)s)
ORDER BY o.id DESC LIMIT %(rows_max)s;

-- name: lock_operation
SELECT o.state FROM operation o
WHERE o.id = %(operation)s AND (%(tenant)s::bigint IS NULL OR o.tenant_id = %(tenant)s)
FOR NO KEY UPDATE;

-- name: change_operation
-- What was allowed until now is not made up for.
UPDATE operation
SET state = %(state)s::text, version = version + 1, worked_at = NULL, credit = 0,
    finished_at = CASE WHEN %(state)s::text = 'aborted' THEN clock_timestamp() END
WHERE id = %(operation)s;

-- name: lock_due
-- The next operation whose time has come and that nobody else works on or changes at this moment.
SELECT o.id, o.kind, o.rate, o.credit,
       coalesce(extract(epoch FROM clock_timestamp() - coalesce(o.worked_at, clock_timestamp())), 0)::float8
FROM operation o
WHERE o.state IN ('starting', 'running') AND o.starts_at <= clock_timestamp() AND o.id > %(after)s
ORDER BY o.id LIMIT 1
FOR NO KEY UPDATE SKIP LOCKED;

-- name: next_items
SELECT place, task_id FROM operation_item
WHERE operation_id = %(operation)s AND outcome IS NULL
ORDER BY place LIMIT %(rows_max)s;

-- name: tell_running
-- Tell running attempts to stop, the first request stands; one that is just ending is passed over.
UPDATE lease l SET cancel_requested_at = coalesce(l.cancel_requested_at, clock_timestamp())
FROM (SELECT lease_id FROM lease WHERE task_id = ANY(%(tasks)s::bigint[])
      ORDER BY lease_id FOR NO KEY UPDATE SKIP LOCKED) f
WHERE l.lease_id = f.lease_id
RETURNING l.task_id;

-- name: lock_tasks
-- In the order in which everybody locks them, passing over those that others hold. Each with what it waits for.
SELECT t.id, t.state, t.links
FROM task t WHERE t.id = ANY(%(tasks)s::bigint[])
ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: read_found
-- Where these tasks stand, without holding them.
SELECT t.id, t.state, t.links, (SELECT d.discarded_at IS NOT NULL FROM dead_letter d WHERE d.task_id = t.id)
FROM task t WHERE t.id = ANY(%(tasks)s::bigint[]);

-- name: write_outcomes
UPDATE operation_item i
SET outcome = CASE WHEN v.why IS NULL THEN 'applied' ELSE 'skipped' END, why = v.why, done_at = clock_timestamp()
FROM unnest(%(places)s::integer[], %(whys)s::text[]) AS v(place, why)
WHERE i.operation_id = %(operation)s AND i.place = v.place AND i.outcome IS NULL;

-- name: advance
-- What was done, and what may be done next; the end, once nothing is left.
UPDATE operation o
SET applied = o.applied + %(applied)s, skipped = o.skipped + %(skipped)s, worked_at = clock_timestamp(), credit = %(credit)s,
    state = CASE WHEN o.applied + o.skipped + %(applied)s + %(skipped)s >= o.total THEN 'done' ELSE 'running' END,
    finished_at = CASE WHEN o.applied + o.skipped + %(applied)s + %(skipped)s >= o.total THEN clock_timestamp() END
WHERE o.id = %(operation)s;

-- name: list_items
-- By place; `outcome` NULL: any.
SELECT i.place, i.task_id, i.outcome, i.why, extract(epoch FROM i.done_at)::float8
FROM operation_item i
WHERE i.operation_id = %(operation)s AND i.place > %(after)s
ORDER BY i.place LIMIT %(rows_max)s;

-- name: list_skipped
SELECT i.place, i.task_id, i.outcome, i.why, extract(epoch FROM i.done_at)::float8
FROM operation_item i
WHERE i.operation_id = %(operation)s AND i.outcome = 'skipped' AND i.place > %(after)s
ORDER BY i.place LIMIT %(rows_max)s;

-- name: count_skips
-- Why tasks were skipped, over the first ten thousand of them.
SELECT why, count(*) FROM (
    SELECT why FROM operation_item WHERE operation_id = %(operation)s AND outcome = 'skipped' LIMIT 10000) s
GROUP BY why ORDER BY 2 DESC;

-- name: delete_operations
-- Operations that ended before the time, with their items.
WITH found AS (
    SELECT id FROM operation WHERE finished_at < to_timestamp(%(before)s) AND state IN ('done', 'aborted')
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
),
items AS (DELETE FROM operation_item i USING found f WHERE i.operation_id = f.id)
DELETE FROM operation o USING found f WHERE o.id = f.id;
