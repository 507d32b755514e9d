-- name: lock_intakes
-- Submissions to a run take turns here, and hold nothing that anybody else needs.
SELECT run_id, steps FROM run_intake WHERE run_id = ANY(%(runs)s::bigint[]) ORDER BY run_id FOR NO KEY UPDATE;

-- name: read_run_terms
-- In a statement after the lock: whoever ended a run before this sees its last submissions, and this sees its end.
SELECT r.id, r.tenant_id, r.state, r.max_steps FROM run r WHERE r.id = ANY(%(runs)s::bigint[]);

-- name: find_run_demand
SELECT id FROM demand WHERE run_id = %(run)s AND writes = %(writes)s AND base_id = %(base)s;

-- name: add_run_demand
-- As the base says, for one run. Ids below zero, from the same sequence. Zero rows: added at the same time; look again.
INSERT INTO demand (id, resource_ids, priced, labels, run_id, writes, base_id)
SELECT -nextval(pg_get_serial_sequence('demand', 'id')), b.resource_ids, b.priced, b.labels, %(run)s, %(writes)s, b.id
FROM demand b WHERE b.id = %(base)s
ON CONFLICT (run_id, writes, base_id) WHERE run_id IS NOT NULL DO NOTHING
RETURNING id;

-- name: count_taken_in
-- Steps that a run took in. `due` once more than the alert's part of what it may have is taken.
UPDATE run_intake i
SET steps = i.steps + n.steps, due = i.due OR (i.steps < r.near AND i.steps + n.steps >= r.near)
FROM unnest(%(runs)s::bigint[], %(steps)s::integer[]) AS n(run_id, steps)
CROSS JOIN LATERAL (SELECT %(alert_at)s * max_steps AS near FROM run WHERE run.id = n.run_id) r
WHERE i.run_id = n.run_id;

-- name: charge_runs
-- What ended attempts of runs used. `due` when that passes the alert's part of the run's cap, or the cap.
WITH used AS MATERIALIZED (
    SELECT d.run_id, sum(n.tokens)::bigint AS tokens, count(*) AS attempts
    FROM unnest(%(demands)s::bigint[], %(tokens)s::bigint[]) AS n(demand_id, tokens)
    JOIN demand d ON d.id = n.demand_id
    GROUP BY 1
),
locked AS MATERIALIZED (
    SELECT u.run_id, u.tokens AS before, r.max_tokens,
           (SELECT b.spent_nano >= %(alert_at)s::float8 * b.limit_nano FROM budget b
            WHERE b.scope = 'run' AND b.scope_id = u.run_id) AS is_dear
    FROM run_use u JOIN run r ON r.id = u.run_id
    WHERE u.run_id IN (SELECT run_id FROM used)
    ORDER BY u.run_id FOR NO KEY UPDATE OF u
)
UPDATE run_use u
SET tokens = u.tokens + n.tokens, attempts = u.attempts + n.attempts,
    due = u.due OR coalesce(l.is_dear, false) OR EXISTS (
        SELECT FROM unnest(ARRAY[%(alert_at)s::float8, 1.0]) part
        WHERE l.before < part * l.max_tokens AND l.before + n.tokens >= part * l.max_tokens
    )
FROM used n JOIN locked l ON l.run_id = n.run_id
WHERE u.run_id = n.run_id;

-- name: mark_broke
-- Runs whose money does not pay for their next step. One that a settlement holds is marked by a later plan.
UPDATE run_use u SET spent_out = true, due = true
FROM (SELECT run_id FROM run_use WHERE run_id = ANY(%(runs)s::bigint[]) AND NOT spent_out
      ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED) n
WHERE u.run_id = n.run_id;

-- name: raise_run_alerts
-- Once for each cap of a run: those that were raised before are not in the answer.
INSERT INTO run_alert (run_id, cap, used, most)
SELECT * FROM unnest(%(runs)s::bigint[], %(caps)s::text[], %(used)s::float8[], %(most)s::float8[])
ON CONFLICT (run_id, cap) DO NOTHING
RETURNING run_id, cap;

-- name: read_heeded
-- Runs of which somebody has to look whether they came near a cap, by the flags of submissions, settlements and the clock.
SELECT r.id FROM run r WHERE r.heed_at <= clock_timestamp()
UNION SELECT run_id FROM run_intake WHERE due
UNION SELECT run_id FROM run_use WHERE due
LIMIT %(runs_max)s;

-- name: read_uses
SELECT r.id, r.tenant_id, r.state, r.max_steps, r.max_width, r.max_tokens, r.max_cost_nano,
       extract(epoch FROM r.deadline_at - r.created_at)::float8, extract(epoch FROM r.created_at)::float8, i.steps,
       u.tokens, b.spent_nano, u.spent_out
FROM run r JOIN run_intake i ON i.run_id = r.id JOIN run_use u ON u.run_id = r.id
JOIN budget b ON b.scope = 'run' AND b.scope_id = r.id
WHERE r.id = ANY(%(runs)s::bigint[])
ORDER BY r.id
FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: heeded
-- Somebody has looked. A row that a submission or settlement holds keeps its flag for the next look.
WITH clock AS (
    UPDATE run r SET heed_at = to_timestamp(n.heed_at)
    FROM unnest(%(runs)s::bigint[], %(heed_ats)s::float8[]) AS n(run_id, heed_at)
    WHERE r.id = n.run_id AND r.heed_at IS DISTINCT FROM to_timestamp(n.heed_at)
),
intake AS (
    UPDATE run_intake i SET due = false
    FROM (SELECT run_id FROM run_intake WHERE run_id = ANY(%(runs)s::bigint[]) AND due
          ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED) n
    WHERE i.run_id = n.run_id
)
UPDATE run_use u SET due = false
FROM (SELECT run_id FROM run_use WHERE run_id = ANY(%(runs)s::bigint[]) AND due
      ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED) n
WHERE u.run_id = n.run_id;

-- name: read_closing_runs
-- Runs that have ended and may have steps left to be stopped.
SELECT id FROM run WHERE closing ORDER BY id LIMIT %(runs_max)s;

-- name: waiting_steps
SELECT t.id, t.state, t.links FROM demand d JOIN task t ON t.demand_id = d.id
WHERE d.run_id = ANY(%(runs)s::bigint[]) AND t.demand_id < 0
  AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying')
ORDER BY t.id
LIMIT %(tasks_max)s;

-- name: tell_steps
-- Tell the running steps of killed runs to stop; the first request stands.
UPDATE lease l SET cancel_requested_at = clock_timestamp()
FROM (
    SELECT l.lease_id FROM lease l
    WHERE l.demand_id < 0 AND l.cancel_requested_at IS NULL
      AND l.demand_id IN (SELECT d.id FROM demand d JOIN run r ON r.id = d.run_id
                          WHERE r.id = ANY(%(runs)s::bigint[]) AND r.state = 'killed')
    ORDER BY l.lease_id FOR NO KEY UPDATE OF l SKIP LOCKED
) found
WHERE l.lease_id = found.lease_id
RETURNING l.lease_id;

-- name: close_runs
-- Nobody is left to be stopped: no step waits, none of a killed run works on untold, and no submission is at it.
WITH quiet AS MATERIALIZED (
    SELECT run_id FROM run_intake WHERE run_id = ANY(%(runs)s::bigint[]) ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE run r SET closing = false
FROM quiet q
WHERE r.id = q.run_id AND r.closing AND NOT EXISTS (
    SELECT FROM demand d JOIN task t ON t.demand_id = d.id
    WHERE d.run_id = r.id AND t.demand_id < 0 AND t.state IN ('blocked', 'scheduled', 'ready', 'retrying')
) AND NOT EXISTS (
    SELECT FROM demand d JOIN lease l ON l.demand_id = d.id WHERE d.run_id = r.id
);

-- name: forget_run_demands
-- Demands of runs that have ended and of whose steps none is kept.
DELETE FROM demand d USING run r
WHERE d.run_id = r.id AND r.finished_at < clock_timestamp() - make_interval(secs => %(after_s)s) AND NOT r.closing
  AND NOT EXISTS (SELECT FROM task_payload p WHERE p.run_id = r.id);
