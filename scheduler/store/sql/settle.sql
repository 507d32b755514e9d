-- name: end_leases
-- End these leases and write their attempts into history. A lease missing from the result was not current: its report
-- is stale. With `expired_only` a lease that was renewed meanwhile stays, with `unclaimed_only` one that was picked up.
-- Each row comes with the limits about which it matters how calls end: those of late trouble, mostly none.
WITH report AS (
    SELECT * FROM unnest(%(leases)s::bigint[], %(outcomes)s::text[], %(classes)s::text[], %(messages)s::text[],
                         %(retry_afters_s)s::float8[], %(usages)s::jsonb[])
        AS r(lease_id, outcome, failure_class, message, retry_after_s, usage)
),
held AS MATERIALIZED (
    SELECT r.* FROM lease l JOIN report r ON r.lease_id = l.lease_id ORDER BY l.lease_id FOR UPDATE OF l
),
ended AS (
    DELETE FROM lease l USING held h
    WHERE l.lease_id = h.lease_id AND (NOT %(expired_only)s::boolean OR l.expires_at < clock_timestamp())
      AND NOT (%(unclaimed_only)s::boolean AND l.picked_up)
    RETURNING l.*, h.outcome, h.failure_class, h.message, h.retry_after_s, h.usage
),
history AS (
    INSERT INTO attempt (lease_id, task_id, number, pool_id, tenant_id, priority, worker_id, ready_at, started_at,
                         finished_at, outcome, failure_class, message, retry_after_s, usage, degraded, model,
                         route_id, route_choice)
    SELECT lease_id, task_id, attempt, pool_id, tenant_id, priority, worker_id, ready_at, started_at,
           clock_timestamp(), outcome, failure_class, message, retry_after_s, usage, degraded, model,
           route_id, route_choice
    FROM ended
)
SELECT lease_id, task_id, attempt, pool_id, tenant_id, demand_id, amounts, cancel_requested_at IS NOT NULL,
       extract(epoch FROM clock_timestamp() - started_at)::float8, reserved_nano, budget_ids,
       extract(epoch FROM started_at)::float8,
       (SELECT array_agg(s.resource_id) FROM resource_state s
        WHERE s.window_at IS NOT NULL OR s.open_until IS NOT NULL
           OR (s.factor < 1 AND s.paced_at < clock_timestamp() - make_interval(secs => %(paced_s)s))),
       -- How those are billed that cost money: looked up for them alone, as a sub-select and not as a table to join.
       CASE WHEN reserved_nano IS NOT NULL THEN
           (SELECT json_build_array(t.kind, t.priority, q.worker_second_nano, p.pricing::text)
            FROM task t JOIN task_payload p ON p.task_id = t.id JOIN pool q ON q.id = t.pool_id
            WHERE t.id = ended.task_id)::text END,
       charged,
       -- For what follows in this transaction: see `lock_dispatch`.
       (SELECT set_config('enable_seqscan', 'off', true) || set_config('plan_cache_mode', 'force_generic_plan', true)
               || set_config('jit', 'off', true) || set_config('idle_in_transaction_session_timeout', '5s', true))
FROM ended;

-- name: take_charges
-- What these attempts were charged while they ran. In a statement of its own: those who charged an attempt held its lease,
-- and what they wrote meanwhile is not to be seen by the statement that ended it.
DELETE FROM lease_charge WHERE lease_id = ANY(%(leases)s::bigint[]) RETURNING lease_id, call, usage::text;

-- name: write_usages
-- What attempts have used in all.
UPDATE attempt a SET usage = n.usage
FROM unnest(%(tasks)s::bigint[], %(leases)s::bigint[], %(usages)s::jsonb[]) AS n(task_id, lease_id, usage)
WHERE a.task_id = n.task_id AND a.lease_id = n.lease_id;

-- name: mark_charged
-- Whoever ends the lease waits for this transaction. Zero rows: it is not current.
UPDATE lease SET charged = true
WHERE lease_id = %(lease)s AND (%(tenant)s::bigint IS NULL OR tenant_id = %(tenant)s::bigint)
RETURNING lease_id, (SELECT count(*) FROM (SELECT FROM lease_charge WHERE lease_id = %(lease)s LIMIT %(most)s) c);

-- name: add_charge
-- Zero rows: a call of that name was charged before.
INSERT INTO lease_charge (lease_id, call, usage) VALUES (%(lease)s, %(call)s, %(usage)s::jsonb)
ON CONFLICT (lease_id, call) DO NOTHING;

-- name: read_retry_rules
-- For failed attempts: how often and how the task may be tried again. The task's own rule goes before its pool's.
SELECT t.id, t.max_attempts, q.backoff_initial_s, q.backoff_multiplier, q.backoff_max_s, p.retry
FROM task t JOIN pool q ON q.id = t.pool_id LEFT JOIN task_payload p ON p.task_id = t.id
WHERE t.id = ANY(%(tasks)s);

-- name: apply_settlements
-- Move tasks out of `running` and keep results. `attempts` guards against anything but the attempt that ended. The start
-- was charged to the tenant's virtual counter by what it was expected to take; now it is known what it took. Returned
-- are those that have ended and are tied to others (bits of `policy.graph.Links`: 1 children, 4 a group that fails fast).
WITH verdict AS (
    SELECT * FROM unnest(%(tasks)s::bigint[], %(attempts)s::smallint[], %(states)s::text[], %(dues)s::float8[],
                         %(spent)s::boolean[], %(results)s::jsonb[], %(took_s)s::float8[])
        AS v(task_id, attempt, state, due_at, spent, result, took_s)
),
kept AS (
    INSERT INTO task_result (task_id, result)
    SELECT task_id, result FROM verdict WHERE result IS NOT NULL
    ON CONFLICT (task_id) DO NOTHING
),
moved AS (
    UPDATE task t
    SET state = v.state,
        attempts = CASE WHEN v.spent THEN t.attempts ELSE t.attempts - 1 END,
        due_at = to_timestamp(v.due_at),
        finished_at = CASE WHEN v.state IN ('ready', 'retrying') THEN NULL ELSE clock_timestamp() END
    FROM verdict v
    WHERE t.id = v.task_id AND t.state = 'running' AND t.attempts = v.attempt
    RETURNING t.id, t.state, t.links, t.finished_at, t.tenant_id, t.priority, v.took_s - t.expected_s AS beyond_s
),
owed AS MATERIALIZED (
    -- Locked in the order in which dispatch locks them.
    SELECT f.id, m.beyond_s / greatest(t.weight, %(weight_min)s) AS correction
    FROM (SELECT tenant_id, priority, sum(beyond_s) AS beyond_s FROM moved GROUP BY 1, 2) m
    JOIN fair_counter f ON f.tenant_id = m.tenant_id AND f.priority = m.priority
    JOIN tenant t ON t.id = m.tenant_id
    ORDER BY f.tenant_id, f.priority
    FOR NO KEY UPDATE OF f
),
corrected AS (
    UPDATE fair_counter f SET value = f.value + o.correction FROM owed o WHERE f.id = o.id
)
SELECT id, state, links FROM moved WHERE links & 5 <> 0 AND finished_at IS NOT NULL;

-- name: correct_levels
-- Settlement of measured amounts: bring the bucket up to now, then add what was reserved and not used, or take what was
-- used beyond. It may go below zero; correcting a level of long ago instead would forgive what an idle bucket refilled.
-- `lowest` (where it is not null) is what a provider says is left: it lowers a level, and never raises one.
UPDATE resource_state s
SET level = least(n.lowest, least(r.burst * (1 - r.margin), s.level + r.rate * (1 - r.margin) * s.factor
                  * greatest(0, extract(epoch FROM moment.now - s.level_at)::float8)) + n.delta),
    level_at = moment.now,
    taken_total = s.taken_total - n.delta
FROM unnest(%(resources)s::bigint[], %(deltas)s::float8[], %(lowest)s::float8[]) AS n(resource_id, delta, lowest)
JOIN resource_in_force r ON r.id = n.resource_id
CROSS JOIN (SELECT clock_timestamp() AS now) moment
WHERE s.resource_id = n.resource_id;

-- name: block_resources
-- A provider asked us to stay away: nothing is taken before that time. Never shortens an earlier request.
UPDATE resource_state s
SET blocked_until = greatest(s.blocked_until, clock_timestamp() + make_interval(secs => n.seconds))
FROM unnest(%(resources)s::bigint[], %(seconds)s::float8[]) AS n(resource_id, seconds)
WHERE s.resource_id = n.resource_id;

-- name: expired_leases
SELECT lease_id FROM lease WHERE expires_at < clock_timestamp() ORDER BY lease_id LIMIT %(leases_max)s;

-- name: unclaimed_leases
-- Given to a worker that did not come for them: nothing was done under them. A remote worker whose process has shown that it
-- lives since then is behind, and soon comes for them: to plan them anew would be more of what holds it up.
SELECT l.lease_id FROM lease l LEFT JOIN worker w ON w.id = l.worker_id
WHERE NOT l.picked_up AND l.started_at < clock_timestamp() - make_interval(secs => %(after_s)s)
  AND (w.kind IS DISTINCT FROM 'remote' OR w.gateway_id IS NULL OR w.seen_at < clock_timestamp() - make_interval(secs => 2 * %(after_s)s)
       OR l.started_at < clock_timestamp() - make_interval(secs => %(behind_s)s))
ORDER BY l.lease_id LIMIT %(leases_max)s;

-- name: overdue_timeouts
-- Attempts at remote workers that go on although their time is over. Engines end theirs by themselves.
SELECT l.lease_id FROM lease l JOIN worker w ON w.id = l.worker_id AND w.kind = 'remote'
WHERE l.timeout_at < clock_timestamp() - make_interval(secs => %(grace_s)s)
ORDER BY l.lease_id LIMIT %(leases_max)s;

-- name: overdue_cancellations
-- Running tasks that were told to stop and did not acknowledge in time.
SELECT lease_id FROM lease
WHERE cancel_requested_at < clock_timestamp() - make_interval(secs => %(grace_s)s)
ORDER BY lease_id LIMIT %(leases_max)s;
