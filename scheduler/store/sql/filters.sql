-- Pieces of which `store/filters.py` puts a search together: one walk, one bound, any number of conditions. A walk goes
-- along one index in the order of its places and is limited, so that a page costs what it looks at, however many tasks
-- there are. `seen_at` is when a task came to be there: a search as of a moment leaves out what came later.

-- name: walk_tasks
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM task t WHERE true

-- name: walk_tenant
SELECT p.task_id AS place, t.created_at AS seen_at, t.* FROM task_payload p JOIN task t ON t.id = p.task_id
WHERE p.tenant_id = %s

-- name: walk_key
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM task t
WHERE t.tenant_id = ANY(ARRAY(SELECT id FROM tenant)) AND t.key = ANY(%s::text[])

-- name: walk_ids
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM task t WHERE t.id = ANY(%s::bigint[])

-- name: walk_running
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM lease l JOIN task t ON t.id = l.task_id WHERE t.state = 'running'

-- name: walk_ready
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM task t WHERE t.state = 'ready'

-- name: walk_due
SELECT t.id AS place, t.created_at AS seen_at, t.* FROM task t WHERE t.state IN ('scheduled', 'retrying')

-- name: walk_dead
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id WHERE true

-- name: walk_kept
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NULL

-- name: walk_fingerprint
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NULL AND d.fingerprint = %s

-- name: walk_dead_tenant
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NULL AND d.tenant_id = %s

-- name: walk_dead_pool
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NULL AND d.pool_id = %s

-- name: walk_discarded
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class, t.* FROM dead_letter d JOIN task t ON t.id = d.task_id
WHERE d.discarded_at IS NOT NULL

-- name: alone_dead
-- These are the same walks without their tasks, to count them: there is one for each, so nobody need look.
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d WHERE true

-- name: alone_tenant
SELECT p.task_id AS place FROM task_payload p WHERE p.tenant_id = %s

-- name: alone_kept
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d WHERE d.discarded_at IS NULL

-- name: alone_fingerprint
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d
WHERE d.discarded_at IS NULL AND d.fingerprint = %s

-- name: alone_dead_tenant
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d
WHERE d.discarded_at IS NULL AND d.tenant_id = %s

-- name: alone_dead_pool
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d
WHERE d.discarded_at IS NULL AND d.pool_id = %s

-- name: alone_discarded
SELECT d.id AS place, d.died_at AS seen_at, d.failure_class FROM dead_letter d WHERE d.discarded_at IS NOT NULL

-- name: older_t
AND t.id < %s ORDER BY t.id DESC LIMIT %s

-- name: newer_t
AND t.id > %s ORDER BY t.id LIMIT %s

-- name: older_p
AND p.task_id < %s ORDER BY p.task_id DESC LIMIT %s

-- name: newer_p
AND p.task_id > %s ORDER BY p.task_id LIMIT %s

-- name: older_d
AND d.id < %s ORDER BY d.id DESC LIMIT %s

-- name: newer_d
AND d.id > %s ORDER BY d.id LIMIT %s

-- name: as_of
s.seen_at <= to_timestamp(%s)

-- name: of_tenant
s.tenant_id = %s

-- name: pool
s.pool_id = ANY(%s::bigint[])

-- name: tenant
s.tenant_id = ANY(%s::bigint[])

-- name: class
s.priority = ANY(%s::smallint[])

-- name: kind
s.kind = ANY(%s::text[])

-- name: key
s.key = ANY(%s::text[])

-- name: task
s.id = ANY(%s::bigint[])

-- name: state_named
s.state = ANY(%s::text[])

-- name: state
-- The states named, and of the dead those that are kept (true) or discarded (false).
(s.state = ANY(%s::text[]) OR (s.state IN ('dead_lettered', 'failed')
    AND (SELECT d.discarded_at IS NULL FROM dead_letter d WHERE d.task_id = s.id) = ANY(%s::boolean[])))

-- name: reason
(SELECT a.failure_class FROM attempt a WHERE a.task_id = s.id ORDER BY a.lease_id DESC LIMIT 1) = ANY(%s::text[])

-- name: reason_of_dead
s.failure_class = ANY(%s::text[])

-- name: fingerprint
(SELECT d.fingerprint FROM dead_letter d WHERE d.task_id = s.id) = ANY(%s::bigint[])

-- name: text
-- One message for each task: whether one EXISTS may be found out by reading all messages there are.
(s.kind ILIKE %s OR s.key ILIKE %s OR (SELECT d.message ILIKE %s FROM dead_letter d WHERE d.task_id = s.id))

-- name: age
extract(epoch FROM to_timestamp(%s) - s.created_at)

-- name: cost
(SELECT coalesce(sum(e.provider_cost_nano), 0) FROM attempt a JOIN ledger_entry e ON e.lease_id = a.lease_id
 WHERE a.task_id = s.id)

-- name: attempts
s.attempts

-- name: over
> %s

-- name: under
< %s

-- name: at_least
>= %s

-- name: at_most
<= %s

-- name: not_so
NOT coalesce(

-- name: otherwise_false
, false)

-- name: ids_of
SELECT s.id, s.place FROM (

-- name: look_open
-- One pass: whatever is asked of a task is asked once, and every task counts as passed.
SELECT (array_agg(m.id ORDER BY m.place DESC) FILTER (WHERE m.matches))[:%s],
       (array_agg(m.place ORDER BY m.place DESC) FILTER (WHERE m.matches))[:%s],
       count(*) FILTER (WHERE m.matches), count(*), min(m.place)
FROM (SELECT s.id, s.place,

-- name: look_of
AS matches FROM (

-- name: look_close
-- OFFSET 0 keeps what is asked from being asked anew wherever its answer is used.
) s OFFSET 0) m

-- name: count_of
SELECT count(*) FROM (SELECT FROM (

-- name: such_that
) s WHERE true

-- name: oldest_first
ORDER BY s.place LIMIT %s

-- name: newest_first
ORDER BY s.place DESC LIMIT %s

-- name: give_up_after
-- For the rest of this transaction, in milliseconds.
SELECT set_config('statement_timeout', %s, true)

-- name: up_to
LIMIT %s) c

-- name: freeze_open
-- The tasks that match, in the order of their ids, become the items of an operation.
INSERT INTO operation_item (operation_id, place, task_id)
SELECT %s, row_number() OVER (ORDER BY m.id), m.id FROM (

-- name: freeze_close
) m
