-- name: find_old_tasks
-- A stretch of tasks by id, as far as they were made before the time: the last id of it, and those that ended before it.
-- Kept are parents of tasks that have yet to be handed their results, the last task of a schedule, and steps of runs that
-- have not ended.
WITH stretch AS (
    SELECT id, state, links, finished_at FROM task
    WHERE id > %(after)s
    ORDER BY id LIMIT %(rows_max)s
)
SELECT (SELECT max(s.id) FROM stretch s),
       (SELECT json_agg(s.id ORDER BY s.id) FROM stretch s
        WHERE s.finished_at < to_timestamp(%(before)s)
          AND s.state NOT IN ('blocked', 'scheduled', 'ready', 'retrying', 'running')
          AND NOT EXISTS (SELECT FROM schedule d WHERE d.last_task_id = s.id)
          AND NOT EXISTS (SELECT FROM task_payload p JOIN run r ON r.id = p.run_id
                          WHERE p.task_id = s.id AND r.finished_at IS NULL)
          AND NOT (s.links & %(children)s <> 0 AND EXISTS (
              SELECT FROM task_edge e JOIN task c ON c.id = e.child_id
              WHERE e.parent_id = s.id AND e.met IS NOT NULL
                AND c.state IN ('blocked', 'scheduled', 'ready', 'retrying', 'running'))))::text;

-- name: delete_tasks
-- One that was replayed, or that somebody holds, stays. What ended well and what failed goes on to be counted, so that
-- rates, which are differences of counts, do not see it go.
WITH found AS (
    SELECT id FROM task
    WHERE id = ANY(%(tasks)s::bigint[]) AND finished_at < to_timestamp(%(before)s)
      AND state NOT IN ('blocked', 'scheduled', 'ready', 'retrying', 'running')
    ORDER BY id FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM task t USING found WHERE t.id = found.id
    RETURNING t.id, t.pool_id, t.priority, t.tenant_id, t.demand_id, t.state
),
payloads AS (DELETE FROM task_payload p USING gone WHERE p.task_id = gone.id),
results AS (DELETE FROM task_result r USING gone WHERE r.task_id = gone.id),
attempts AS (DELETE FROM attempt a USING gone WHERE a.task_id = gone.id),
faults AS (DELETE FROM attempt_fault f USING gone WHERE f.task_id = gone.id),
letters AS (DELETE FROM dead_letter d USING gone WHERE d.task_id = gone.id),
edges AS (DELETE FROM task_edge e USING gone WHERE e.child_id = gone.id),
starts AS (DELETE FROM fixed_start f USING gone WHERE f.task_id = gone.id),
counted AS (
    INSERT INTO task_delta (pool_id, priority, tenant_id, demand_id, counter, n)
    SELECT pool_id, priority, tenant_id, demand_id,
           CASE state WHEN 'succeeded' THEN 'pruned_ok' ELSE 'pruned_failed' END, count(*)
    FROM gone WHERE state IN ('succeeded', 'failed', 'dead_lettered') GROUP BY 1, 2, 3, 4, 5
)
SELECT count(*) FROM gone;

-- name: delete_groups
-- Old ones in which nobody is. A submission that is about to join one holds its row.
WITH found AS (
    SELECT g.id FROM task_group g
    WHERE g.created_at < to_timestamp(%(before)s) AND NOT EXISTS (SELECT FROM task_payload p WHERE p.group_id = g.id)
    ORDER BY g.id LIMIT %(rows_max)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM task_group g USING found WHERE g.id = found.id;

-- name: delete_runs
-- A stretch of runs by id: the last id of it, and how many went with all that is theirs. Kept are those of which a step or what a
-- step needs is kept. The ledger stays; so does what it says that a run cost.
WITH stretch AS MATERIALIZED (
    SELECT id, finished_at, closing FROM run WHERE id > %(after)s AND created_at < to_timestamp(%(before)s)
    ORDER BY id LIMIT %(rows_max)s
),
found AS MATERIALIZED (
    SELECT r.id FROM run r JOIN stretch s ON s.id = r.id
    WHERE r.finished_at < to_timestamp(%(before)s) AND NOT r.closing
      AND NOT EXISTS (SELECT FROM task_payload p WHERE p.run_id = r.id)
      AND NOT EXISTS (SELECT FROM demand d WHERE d.run_id = r.id)
    ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
),
gone AS (DELETE FROM run r USING found WHERE r.id = found.id RETURNING r.id),
intakes AS (DELETE FROM run_intake i USING gone WHERE i.run_id = gone.id),
uses AS (DELETE FROM run_use u USING gone WHERE u.run_id = gone.id),
caps AS (DELETE FROM run_alert a USING gone WHERE a.run_id = gone.id),
checkpoints AS (DELETE FROM checkpoint c USING gone WHERE c.run_id = gone.id),
receipts AS (DELETE FROM receipt c USING gone WHERE c.run_id = gone.id),
budgets AS (DELETE FROM budget b USING gone WHERE b.scope = 'run' AND b.scope_id = gone.id RETURNING b.id),
alerts AS (DELETE FROM alert a USING budgets WHERE a.budget_id = budgets.id)
SELECT (SELECT max(id) FROM stretch), (SELECT count(*) FROM gone);

-- name: delete_audit
-- Says to the trigger that guards the audit, until this transaction ends, that it is the prune that deletes.
DELETE FROM audit_event
WHERE id IN (SELECT id FROM audit_event WHERE at < to_timestamp(%(before)s) ORDER BY at, id LIMIT %(rows_max)s)
  AND set_config('cronoq.prunes_audit', 'on', true) = 'on';

-- name: count_old
-- What a prune would look at, without doing it; an upper bound, for some of it may have to stay.
SELECT (SELECT count(*) FROM task WHERE finished_at < to_timestamp(%(before)s)
          AND state NOT IN ('blocked', 'scheduled', 'ready', 'retrying', 'running')),
       (SELECT count(*) FROM task_group g WHERE g.created_at < to_timestamp(%(before)s)
          AND NOT EXISTS (SELECT FROM task_payload p WHERE p.group_id = g.id)),
       (SELECT count(*) FROM audit_event WHERE at < to_timestamp(%(audit_before)s));
