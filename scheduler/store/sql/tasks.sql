-- name: cancel_waiting
-- Cancel waiting tasks at once. A task missing from the result runs, or has ended.
UPDATE task SET state = 'cancelled', due_at = NULL, finished_at = clock_timestamp()
WHERE id = ANY(%(tasks)s) AND state IN ('blocked', 'scheduled', 'ready', 'retrying')
RETURNING id, links;

-- name: request_cancel
-- Tell running attempts to stop; the first request stands.
UPDATE lease SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
WHERE task_id = ANY(%(tasks)s)
RETURNING task_id;

-- name: replay_tasks
-- Start ended tasks afresh: same id and key, attempts from zero. Leases of earlier attempts ended with them, so their
-- late reports stay rejected. One that ended while it waited for others goes only once they have ended as it needs. Dead
-- letters among them are none any more.
WITH replayed AS (
    UPDATE task
    SET state = 'ready', attempts = 0, replays = replays + 1, ready_at = clock_timestamp(), due_at = NULL,
        latest_start = NULL, start_by = NULL, finished_at = NULL
    WHERE id = ANY(%(tasks)s) AND state IN ('dead_lettered', 'failed', 'shed', 'missed')
      AND (links & 2 = 0 OR NOT EXISTS (SELECT FROM task_edge e WHERE e.child_id = task.id AND e.met IS NOT TRUE))
    RETURNING id
),
risen AS (
    DELETE FROM dead_letter d USING replayed r WHERE d.task_id = r.id
)
SELECT id FROM replayed;

-- name: read_tasks
SELECT t.id, tenant.slug, pool.name, t.kind, t.priority, t.state, t.key, t.attempts, t.max_attempts, t.replays,
       extract(epoch FROM t.created_at)::float8, extract(epoch FROM t.ready_at)::float8,
       extract(epoch FROM t.due_at)::float8, extract(epoch FROM t.finished_at)::float8,
       extract(epoch FROM p.deadline_at)::float8, t.tenant_id, t.pool_id, t.demand_id, t.amounts, d.resource_ids,
       p.tags, t.expected_s, extract(epoch FROM t.latest_start)::float8,
       ARRAY(SELECT r.name FROM unnest(d.resource_ids) WITH ORDINALITY AS i(id, place)
             JOIN resource r ON r.id = i.id ORDER BY i.place),
       t.links, (SELECT g.name FROM task_group g WHERE g.id = p.group_id),
       extract(epoch FROM t.start_by)::float8, d.run_id, d.writes
FROM task t
JOIN tenant ON tenant.id = t.tenant_id
JOIN pool ON pool.id = t.pool_id
JOIN demand d ON d.id = t.demand_id
LEFT JOIN task_payload p ON p.task_id = t.id
WHERE t.id = ANY(%(tasks)s) AND (%(tenant)s::bigint IS NULL OR t.tenant_id = %(tenant)s)
ORDER BY t.id DESC;

-- name: read_payload
SELECT payload::text FROM task_payload WHERE task_id = %(task)s;

-- name: read_result
SELECT result::text FROM task_result WHERE task_id = %(task)s;

-- name: read_states
SELECT id, state FROM task WHERE id = ANY(%(tasks)s::bigint[]);

-- name: read_ended
-- Those of thousands that somebody waits for which have ended; most have not.
SELECT id, state FROM task
WHERE id = ANY(%(tasks)s::bigint[]) AND state NOT IN ('blocked', 'scheduled', 'ready', 'retrying', 'running');

-- name: attempts_of_task
SELECT a.lease_id, a.number, a.worker_id::text, extract(epoch FROM a.started_at)::float8,
       extract(epoch FROM a.finished_at)::float8, a.outcome, a.failure_class, a.message, a.retry_after_s,
       a.usage::text, a.degraded, a.model, a.route_choice
FROM attempt a WHERE a.task_id = %(task)s
ORDER BY a.lease_id DESC LIMIT %(rows_max)s;

-- name: lease_of_task
SELECT lease_id, attempt, worker_id::text, extract(epoch FROM started_at)::float8,
       cancel_requested_at IS NOT NULL, degraded
FROM lease WHERE task_id = %(task)s;

-- name: list_tasks
-- Newest first, by keyset on id. Every filter is optional.
SELECT t.id FROM task t
WHERE true
  AND (%(before)s::bigint IS NULL OR t.id < %(before)s)
  AND (%(pools)s::bigint[] IS NULL OR t.pool_id = ANY(%(pools)s))
  AND (%(states)s::text[] IS NULL OR t.state = ANY(%(states)s))
  AND (%(priorities)s::smallint[] IS NULL OR t.priority = ANY(%(priorities)s))
  AND (%(kinds)s::text[] IS NULL OR t.kind = ANY(%(kinds)s))
  AND (%(key)s::text IS NULL OR t.key = %(key)s)
ORDER BY t.id DESC
LIMIT %(rows_max)s;

-- name: list_tasks_of_tenant
-- The same within a tenant, along the index task_payload_by_tenant.
SELECT t.id FROM task_payload p JOIN task t ON t.id = p.task_id
WHERE p.tenant_id = %(tenant)s AND (%(before)s::bigint IS NULL OR p.task_id < %(before)s)
  AND (%(pools)s::bigint[] IS NULL OR t.pool_id = ANY(%(pools)s))
  AND (%(states)s::text[] IS NULL OR t.state = ANY(%(states)s))
  AND (%(priorities)s::smallint[] IS NULL OR t.priority = ANY(%(priorities)s))
  AND (%(kinds)s::text[] IS NULL OR t.kind = ANY(%(kinds)s))
  AND (%(key)s::text IS NULL OR t.key = %(key)s)
ORDER BY p.task_id DESC
LIMIT %(rows_max)s;

-- name: ahead_in_lane
-- Ready tasks of the same lane that go before this one, counted to a bound.
SELECT count(*) FROM (
    SELECT FROM task t JOIN task me ON me.id = %(task)s
    WHERE t.state = 'ready' AND t.pool_id = me.pool_id AND t.priority = me.priority AND t.tenant_id = me.tenant_id
      AND t.demand_id = me.demand_id AND (t.ready_at, t.id) < (me.ready_at, me.id)
    LIMIT %(count_max)s
) before;

-- name: ready_by_lane
-- How many tasks are ready in each lane of a pool: folded counts plus the changes since.
SELECT priority, tenant_id, demand_id, sum(n)::bigint
FROM (SELECT priority, tenant_id, demand_id, n FROM task_count WHERE pool_id = %(pool)s AND counter = 'ready'
      UNION ALL
      SELECT priority, tenant_id, demand_id, n FROM task_change WHERE pool_id = %(pool)s AND counter = 'ready') AS counts
GROUP BY 1, 2, 3 HAVING sum(n) > 0;

-- name: lane_heads
-- Of each of these lanes of a pool: the task that waits longest, and the one with the earliest latest start.
SELECT l.priority, l.tenant_id, l.demand_id, head.*
FROM unnest(%(priorities)s::smallint[], %(tenants)s::bigint[], %(demands)s::bigint[])
     AS l(priority, tenant_id, demand_id)
CROSS JOIN LATERAL (
    (SELECT t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8, t.expected_s
     FROM task t
     WHERE t.state = 'ready' AND t.pool_id = %(pool)s AND t.priority = l.priority AND t.tenant_id = l.tenant_id
       AND t.demand_id = l.demand_id
     ORDER BY t.ready_at, t.id LIMIT 1)
    UNION ALL
    (SELECT t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8, t.expected_s
     FROM task t
     WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.pool_id = %(pool)s AND t.priority = l.priority
       AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id
     ORDER BY t.latest_start, t.id LIMIT 1)
) head;
