-- name: add_run
-- A run with the rows that its submissions and its settlements write. Zero rows: the tenant has used the key before.
WITH added AS (
    INSERT INTO run (tenant_id, name, key, fingerprint, goal, state, max_steps, max_width, max_tokens, max_cost_nano,
                     deadline_at, heed_at, created_at)
    SELECT %(tenant)s::bigint, %(name)s::text, %(key)s::text, %(fingerprint)s::bytea, %(goal)s::jsonb, 'active',
           %(max_steps)s::integer, %(max_width)s::integer, %(max_tokens)s::bigint, %(max_cost_nano)s::bigint,
           moment.now + make_interval(secs => %(wall_s)s::float8),
           moment.now + make_interval(secs => %(heed_s)s::float8), moment.now
    FROM (SELECT clock_timestamp() AS now) moment
    ON CONFLICT (tenant_id, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id
),
taking AS (INSERT INTO run_intake (run_id) SELECT id FROM added),
using_up AS (INSERT INTO run_use (run_id) SELECT id FROM added),
paying AS (
    INSERT INTO budget (scope, scope_id, limit_nano) SELECT 'run', id, %(max_cost_nano)s::bigint FROM added
)
SELECT id FROM added;

-- name: find_run_by_key
SELECT id, fingerprint FROM run WHERE tenant_id = %(tenant)s AND key = %(key)s;

-- name: read_runs
SELECT r.id, r.tenant_id, t.slug, r.name, r.key, r.state, r.reason, r.epoch, r.max_steps, r.max_width, r.max_tokens,
       r.max_cost_nano, extract(epoch FROM r.deadline_at)::float8, r.closing, r.version,
       extract(epoch FROM r.created_at)::float8, extract(epoch FROM r.finished_at)::float8, i.steps, u.tokens,
       u.attempts, b.spent_nano, c.version
FROM run r
JOIN tenant t ON t.id = r.tenant_id
JOIN run_intake i ON i.run_id = r.id
JOIN run_use u ON u.run_id = r.id
JOIN budget b ON b.scope = 'run' AND b.scope_id = r.id
LEFT JOIN checkpoint c ON c.run_id = r.id
WHERE r.id = ANY(%(runs)s::bigint[]) AND (%(tenant)s::bigint IS NULL OR r.tenant_id = %(tenant)s)
ORDER BY r.id DESC;

-- name: list_runs
-- Newest first, by keyset on id.
SELECT r.id FROM run r
WHERE (%(tenant)s::bigint IS NULL OR r.tenant_id = %(tenant)s)
  AND (%(before)s::bigint IS NULL OR r.id < %(before)s)
  AND (%(states)s::text[] IS NULL OR r.state = ANY(%(states)s))
ORDER BY r.id DESC
LIMIT %(rows_max)s;

-- name: read_run_texts
-- What a run was made for and what came of it, as JSON text.
SELECT goal::text, result::text FROM run WHERE id = %(run)s;

-- name: count_steps
SELECT t.state, count(*) FROM task_payload p JOIN task t ON t.id = p.task_id
WHERE p.run_id = %(run)s GROUP BY 1;

-- name: lock_run
SELECT state, version FROM run
WHERE id = %(run)s AND (%(tenant)s::bigint IS NULL OR tenant_id = %(tenant)s)
FOR NO KEY UPDATE;

-- name: move_run
-- Where the run stands from now on, in the states that the caller has seen it in.
UPDATE run SET
    state = %(state)s::text, reason = %(reason)s::text, version = version + 1, result = coalesce(%(result)s::jsonb, result),
    epoch = epoch + CASE WHEN %(state)s::text = 'killed' THEN 1 ELSE 0 END,
    closing = %(state)s::text NOT IN ('active', 'paused'),
    heed_at = CASE WHEN %(state)s::text IN ('active', 'paused') THEN heed_at END,
    finished_at = CASE WHEN %(state)s::text NOT IN ('active', 'paused') THEN clock_timestamp() END
WHERE id = %(run)s AND state = %(seen)s::text;

-- name: edit_caps
-- New caps. The wall clock is measured from the run's creation, and heeded anew.
UPDATE run SET
    max_steps = %(max_steps)s, max_width = %(max_width)s, max_tokens = %(max_tokens)s, max_cost_nano = %(max_cost_nano)s,
    deadline_at = created_at + make_interval(secs => %(wall_s)s::float8), heed_at = to_timestamp(%(heed_at)s::float8),
    version = version + 1
WHERE id = %(run)s;

-- name: edit_money
UPDATE budget SET limit_nano = %(max_cost_nano)s::bigint WHERE scope = 'run' AND scope_id = %(run)s;

-- name: is_solvent
-- It is to be seen anew whether its money pays for its next step. After `edit_money`, as settlements lock these rows.
UPDATE run_use SET spent_out = false WHERE run_id = %(run)s AND spent_out;

-- name: read_alerts
SELECT cap, used, most, extract(epoch FROM at)::float8 FROM run_alert WHERE run_id = %(run)s ORDER BY at, cap;

-- name: tell_planner
-- Something that a plan remembers of a run has changed. To be called while holding the turn to plan: so the marks of
-- runs are in the order in which plans see them.
UPDATE run SET change_mark = nextval('run_change_seq') WHERE id = %(run)s;

-- name: read_checkpoint
SELECT checkpoint::text, version, task_id, extract(epoch FROM saved_at)::float8 FROM checkpoint WHERE run_id = %(run)s;

-- name: save_checkpoint
-- Zero rows: another version is the current one.
INSERT INTO checkpoint AS c (run_id, version, checkpoint, task_id)
SELECT %(run)s::bigint, 1, %(checkpoint)s::jsonb, %(task)s::bigint
WHERE coalesce(%(after)s::bigint, 0) = 0 OR EXISTS (SELECT FROM checkpoint WHERE run_id = %(run)s)
ON CONFLICT (run_id) DO UPDATE
SET version = c.version + 1, checkpoint = excluded.checkpoint, task_id = excluded.task_id, saved_at = clock_timestamp()
WHERE c.version = coalesce(%(after)s::bigint, c.version)
RETURNING version;

-- name: read_of_steps
-- For attempts that are steps of runs: the run, and where it can be taken up.
SELECT l.lease_id, d.run_id, c.checkpoint::text
FROM lease l JOIN demand d ON d.id = l.demand_id LEFT JOIN checkpoint c ON c.run_id = d.run_id
WHERE l.lease_id = ANY(%(leases)s::bigint[]);

-- name: read_run_around
-- A run as one of its waiting steps meets it.
SELECT r.id, r.state, r.reason, r.max_width,
       (SELECT count(*) FROM lease l JOIN demand d ON d.id = l.demand_id WHERE l.demand_id < 0 AND d.run_id = r.id),
       EXISTS (SELECT FROM lease l JOIN demand d ON d.id = l.demand_id
               WHERE l.demand_id < 0 AND d.run_id = r.id AND d.writes),
       (SELECT t.id FROM demand d JOIN task t ON t.demand_id = d.id
        WHERE d.run_id = r.id AND d.writes AND t.demand_id < 0 AND t.state IN ('ready', 'retrying')
        ORDER BY t.ready_at, t.id LIMIT 1),
       u.spent_out OR coalesce(u.tokens >= r.max_tokens, false) OR coalesce(r.deadline_at <= clock_timestamp(), false)
FROM run r JOIN run_use u ON u.run_id = r.id
WHERE r.id = %(run)s;
