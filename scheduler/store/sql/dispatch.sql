-- name: lock_dispatch
-- The turn to plan (one at a time: two planners would draw on the same slots and permits), then every shared limit with
-- its state, locked in id order against settlements. A locked row is the newest one, however long the turn took to come.
-- Key of the turn: a namespace of ours ('cq') and its number in it. The tables turn over too fast for their statistics to
-- be true, and every statement here has its index: the optimizer is told not to trust the former over the latter. Before
-- PostgreSQL 18 it does so by a price so high that compiling would seem to pay, which takes seconds: not that either.
WITH turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(25457, 1), set_config('enable_seqscan', 'off', true),
           set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
           -- An engine that is suspended here must not keep the turn: the server ends its session, another engine plans.
           set_config('idle_in_transaction_session_timeout', '5s', true)
)
SELECT r.id, r.kind, s.level, extract(epoch FROM s.level_at)::float8, r.rate, r.burst, r.permits, r.margin, s.factor,
       extract(epoch FROM s.blocked_until)::float8, extract(epoch FROM r.changes_at)::float8, r.ceilings::text,
       extract(epoch FROM s.open_until)::float8, s.paused_at IS NOT NULL
FROM resource_in_force r JOIN resource_state s ON s.resource_id = r.id
-- Known before any row is read, so that the turn is taken even where there are no limits. As one more table to join it
-- would come last in some plans, and never where the first has no rows.
WHERE (SELECT count(*) FROM turn) = 1
ORDER BY r.id
FOR UPDATE OF s;

-- name: take_turn
-- For who writes what plans wait for: no plan is being made from here to the end of the transaction, and the next one sees
-- what was written.
SELECT pg_advisory_xact_lock(25457, 1), set_config('idle_in_transaction_session_timeout', '5s', true);

-- name: commit_soon
SELECT set_config('synchronous_commit', 'off', true);

-- name: read_now
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: read_control
-- What a plan reads before it looks at any task, at one moment: the time, when the next task is due and when the next one
-- may not start any more, pools, live leases by pool, worker and demand (of steps: what they need beside their run's
-- leave) with what they hold by position, fixed starts that are near or have just come, workers seen lately, and what
-- changed about the lanes and the runs.
SELECT
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT extract(epoch FROM t.due_at)::float8 FROM task t
     WHERE t.state IN ('scheduled', 'retrying') ORDER BY t.due_at, t.id LIMIT 1),
    (SELECT extract(epoch FROM t.start_by)::float8 FROM task t
     WHERE t.state IN ('scheduled', 'ready', 'retrying') AND t.start_by IS NOT NULL
     ORDER BY t.start_by, t.id LIMIT 1),
    (SELECT json_agg(json_build_array(q.id, q.slots, q.paused_at IS NOT NULL, q.lease_ttl_s, q.timeout_s) ORDER BY q.id)
     FROM pool q)::text,
    (SELECT json_agg(json_build_array(f.pool_id, f.worker_id, f.demand_id, f.leases, f.held))
     FROM (
        SELECT l.pool_id, l.worker_id,
               CASE WHEN l.demand_id < 0 THEN (SELECT d.base_id FROM demand d WHERE d.id = l.demand_id)
                    ELSE l.demand_id END AS demand_id,
               count(*) AS leases,
               array_remove(ARRAY[sum(l.amounts[1]), sum(l.amounts[2]), sum(l.amounts[3]), sum(l.amounts[4]),
                                  sum(l.amounts[5]), sum(l.amounts[6]), sum(l.amounts[7]), sum(l.amounts[8])],
                            NULL) AS held
        FROM lease l GROUP BY 1, 2, 3
     ) f)::text,
    (SELECT json_agg(json_build_array(f.pool_id, t.state = 'ready', t.priority, t.tenant_id, t.demand_id, t.id,
                                      extract(epoch FROM t.ready_at)::float8,
                                      extract(epoch FROM t.latest_start)::float8, t.expected_s, t.amounts,
                                      coalesce(t.cost_nano, 0), coalesce(t.cost_min_nano, 0))
                     ORDER BY t.latest_start, t.id)
     FROM (SELECT n.task_id, n.pool_id, n.held_from FROM fixed_start n
           WHERE n.starts_at > statement_timestamp() - make_interval(secs => %(held_after_s)s)
             AND n.starts_at <= statement_timestamp() + make_interval(secs => %(held_ahead_s)s)
           ORDER BY n.starts_at, n.task_id LIMIT 1000) f
     CROSS JOIN LATERAL (SELECT t.* FROM task t
                         WHERE t.id = f.task_id AND t.state IN ('scheduled', 'ready') AND t.attempts = 0 LIMIT 1) t
     WHERE f.held_from <= statement_timestamp())::text,
    (SELECT json_agg(json_build_array(w.id, w.slots, w.tenant_id, w.labels) ORDER BY w.id) FROM worker w
     WHERE NOT w.draining AND w.seen_at > clock_timestamp() - make_interval(secs => %(fresh_s)s))::text,
    -- What came to lanes since the counts were folded: how often, and the last of it (a fold in between may leave as many
    -- as there were); how often they were folded, and what each fold since the one that is known took of this.
    (SELECT json_agg(json_build_array(a.pool_id, a.priority, a.tenant_id, a.demand_id, a.times, a.last,
                                      CASE WHEN a.demand_id < 0 THEN
                                          (SELECT d.base_id FROM demand d WHERE d.id = a.demand_id) END))
     FROM (SELECT pool_id, priority, tenant_id, demand_id, count(*) AS times, max(id) AS last FROM task_delta
           WHERE counter = 'ready' AND n > 0 GROUP BY 1, 2, 3, 4) a)::text,
    coalesce((SELECT m.folds FROM fold_mark m WHERE m.id = 1), 0),
    (SELECT json_agg(f.lanes ORDER BY f.fold) FROM folded_arrivals f WHERE f.fold > %(folds)s)::text,
    -- What was killed beside single runs.
    (SELECT json_agg(json_build_array(k.scope, k.scope_id)) FROM kill_epoch k WHERE k.lifted_at IS NULL)::text,
    -- Lanes that every plan looks at: those of the deadlines that press most, so many of each pool and class, and those for
    -- whose head something is set aside. A deadline that does not press yet is in nobody's way.
    -- `priority >= 0` is always so: it tells the optimizer which index this is about (see the index).
    (SELECT json_agg(json_build_array(lane.pool_id, lane.priority, lane.tenant_id, lane.demand_id))
     FROM (
        (WITH RECURSIVE seat AS (
            (SELECT t.pool_id, t.priority
             FROM task t
             WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.priority >= 0
             ORDER BY t.pool_id, t.priority, t.latest_start, t.id
             LIMIT 1)
            UNION ALL
            SELECT n.pool_id, n.priority
            FROM seat s
            CROSS JOIN LATERAL (
                SELECT t.pool_id, t.priority
                FROM task t
                WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.priority >= 0
                  AND (t.pool_id, t.priority) > (s.pool_id, s.priority)
                ORDER BY t.pool_id, t.priority, t.latest_start, t.id
                LIMIT 1
            ) n
        )
        SELECT DISTINCT near.pool_id, near.priority, near.tenant_id, near.demand_id
        FROM seat s
        CROSS JOIN LATERAL (
            SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id, t.latest_start, t.expected_s
            FROM task t
            WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.priority >= 0
              AND t.pool_id = s.pool_id AND t.priority = s.priority
            ORDER BY t.latest_start, t.id
            LIMIT %(pressing_max)s
        ) near
        WHERE near.latest_start < clock_timestamp() + make_interval(secs => greatest(%(window_min_s)s, near.expected_s)))
        UNION ALL
        SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id
        FROM set_aside a
        CROSS JOIN LATERAL (SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id FROM task t
                            WHERE t.id = a.task_id AND t.state || '' = 'ready' LIMIT 1) t
     ) lane
    )::text,
    -- Breakers whose probe is under way. Read here and not with the locked rows: that statement began before it had its
    -- turn, and sees the leases of then.
    (SELECT json_agg(s.resource_id) FROM resource_state s
     JOIN lease l ON l.lease_id = s.probe_lease WHERE s.open_until IS NOT NULL)::text,
    -- Running steps of runs by demand; and the runs that somebody moved since a mark, up to which.
    (SELECT json_build_array(array_agg(f.demand_id), array_agg(f.leases))
     FROM (SELECT demand_id, count(*) AS leases FROM lease WHERE demand_id < 0 GROUP BY 1) f)::text,
    (SELECT json_agg(id) FROM run WHERE change_mark > %(mark)s)::text,
    (SELECT last_value FROM run_change_seq);

-- name: read_all_lanes
-- Every lane with ready work and since when its head is ready (by jumping from lane to lane along task_ready_by_lane),
-- all virtual counters, and virtual time by class.
SELECT
    (SELECT json_agg(json_build_array(lane.pool_id, lane.priority, lane.tenant_id, lane.demand_id,
                                      extract(epoch FROM lane.ready_at)::float8,
                                      CASE WHEN lane.demand_id < 0 THEN
                                          (SELECT d.base_id FROM demand d WHERE d.id = lane.demand_id) END))
     FROM (
        WITH RECURSIVE hop AS (
            (SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id, t.ready_at
             FROM task t
             WHERE t.state = 'ready'
             ORDER BY t.pool_id, t.priority, t.tenant_id, t.demand_id, t.ready_at, t.id
             LIMIT 1)
            UNION ALL
            SELECT n.pool_id, n.priority, n.tenant_id, n.demand_id, n.ready_at
            FROM hop h
            CROSS JOIN LATERAL (
                SELECT t.pool_id, t.priority, t.tenant_id, t.demand_id, t.ready_at
                FROM task t
                WHERE t.state = 'ready'
                  AND (t.pool_id, t.priority, t.tenant_id, t.demand_id)
                      > (h.pool_id, h.priority, h.tenant_id, h.demand_id)
                ORDER BY t.pool_id, t.priority, t.tenant_id, t.demand_id, t.ready_at, t.id
                LIMIT 1
            ) n
        )
        SELECT * FROM hop
     ) lane)::text,
    (SELECT json_agg(json_build_array(tenant_id, priority, value, extract(epoch FROM last_start_at)::float8))
     FROM fair_counter)::text,
    (SELECT json_agg(json_build_array(priority, value)) FROM fair_clock)::text;

-- name: read_lanes
-- The first `width` tasks of each lane in order, then (marked) those that are nearest to their latest start. The row of
-- lane 0 says who stands in them: tenants with their virtual counters, the own limits of those that have some, what
-- demands need, virtual time by class, the starts that classes are owed, and what is set aside for tasks that may start.
WITH lane AS (
    SELECT * FROM unnest(%(pools)s::bigint[], %(priorities)s::smallint[], %(tenants)s::bigint[], %(demands)s::bigint[])
        WITH ORDINALITY AS l(pool_id, priority, tenant_id, demand_id, n)
)
SELECT l.n, false, t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8,
       t.expected_s, t.amounts, t.cost_nano, t.cost_min_nano, NULL
FROM lane l
CROSS JOIN LATERAL (
    SELECT id, ready_at, latest_start, expected_s, amounts, cost_nano, cost_min_nano
    FROM task t
    WHERE t.state = 'ready' AND t.pool_id = l.pool_id AND t.priority = l.priority
      AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id
    ORDER BY t.ready_at, t.id
    LIMIT %(width)s
) t
UNION ALL
SELECT l.n, true, t.id, extract(epoch FROM t.ready_at)::float8, extract(epoch FROM t.latest_start)::float8,
       t.expected_s, t.amounts, t.cost_nano, t.cost_min_nano, NULL
FROM lane l
CROSS JOIN LATERAL (
    SELECT id, ready_at, latest_start, expected_s, amounts, cost_nano, cost_min_nano
    FROM task t
    WHERE t.state = 'ready' AND t.latest_start IS NOT NULL AND t.pool_id = l.pool_id AND t.priority = l.priority
      AND t.tenant_id = l.tenant_id AND t.demand_id = l.demand_id
    ORDER BY t.latest_start, t.id
    LIMIT %(width)s
) t
UNION ALL
SELECT 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, json_build_array(
    (SELECT json_agg(json_build_array(t.id, t.weight, t.status = 'suspended', f.priority, f.value,
                                      extract(epoch FROM f.last_start_at)::float8))
     FROM tenant t LEFT JOIN fair_counter f ON f.tenant_id = t.id
     WHERE t.id IN (SELECT tenant_id FROM lane)),
    (SELECT json_agg(json_build_array(t.id, t.start_rate, t.start_burst, s.level, extract(epoch FROM s.level_at)::float8,
                                      t.max_in_flight, CASE WHEN t.max_in_flight IS NOT NULL THEN
                                          (SELECT count(*) FROM lease l WHERE l.tenant_id = t.id) END))
     FROM tenant t LEFT JOIN tenant_state s ON s.tenant_id = t.id
     WHERE t.id IN (SELECT tenant_id FROM lane) AND (t.start_rate IS NOT NULL OR t.max_in_flight IS NOT NULL)),
    (SELECT json_agg(json_build_array(d.id, d.resource_ids, d.priced, d.labels, d.run_id, d.writes)) FROM demand d
     WHERE d.id = ANY(%(needed)s::bigint[])),
    -- Runs of these lanes: how they stand, and the writing step whose turn it is, found in the order of its lane.
    (SELECT json_agg(json_build_array(r.id, r.state, r.max_width,
                                      coalesce(u.tokens >= r.max_tokens, false)
                                      OR coalesce(r.deadline_at <= clock_timestamp(), false),
                                      (SELECT t.id
                                       FROM demand d
                                       CROSS JOIN LATERAL (
                                           SELECT t.ready_at, t.id FROM task t
                                           WHERE t.demand_id = d.id AND t.demand_id < 0
                                             AND t.state IN ('ready', 'retrying')
                                           ORDER BY t.ready_at, t.id LIMIT 1
                                       ) t
                                       WHERE d.run_id = r.id AND d.writes
                                       ORDER BY t.ready_at, t.id LIMIT 1),
                                      (SELECT json_build_array(b.id, b.allowed_nano, b.spent_nano, b.reserved_nano)
                                       FROM budget_in_force b WHERE b.scope = 'run' AND b.scope_id = r.id),
                                      (SELECT json_agg(json_build_array(d.id, d.writes)) FROM demand d
                                       WHERE d.run_id = r.id)))
     FROM run r JOIN run_use u ON u.run_id = r.id
     WHERE r.id IN (SELECT d.run_id FROM demand d WHERE d.id IN (SELECT demand_id FROM lane WHERE demand_id < 0))),
    (SELECT json_agg(json_build_array(priority, value)) FROM fair_clock),
    (SELECT json_agg(json_build_array(pool_id, priority, value)) FROM class_credit),
    (SELECT json_agg(json_build_array(a.resource_id, a.priority, a.task_id, a.amount,
                                      extract(epoch FROM a.since)::float8))
     FROM set_aside a
     -- From the few that are set aside to their tasks, never the other way round: a sub-select with a limit is a fence.
     CROSS JOIN LATERAL (SELECT t.pool_id, t.tenant_id FROM task t
                         WHERE t.id = a.task_id AND t.state || '' = 'ready' LIMIT 1) t
     JOIN pool p ON p.id = t.pool_id AND p.paused_at IS NULL
     JOIN tenant n ON n.id = t.tenant_id AND n.status = 'active'),
    -- Budgets of those whose lanes cost money, of their present period.
    (SELECT json_agg(json_build_array(b.scope_id, b.id, b.allowed_nano, b.spent_nano, b.reserved_nano,
                                      extract(epoch FROM b.period_end)::float8))
     FROM (SELECT DISTINCT l.tenant_id FROM lane l JOIN demand d ON d.id = l.demand_id AND d.priced) t
     CROSS JOIN LATERAL (
        SELECT * FROM budget_in_force b
        WHERE b.scope = 'tenant' AND b.scope_id = t.tenant_id AND b.period_end > statement_timestamp()
        ORDER BY b.period_start DESC LIMIT 1
     ) b)
)::text;

-- name: read_openings
-- Tenants that have no budget in force: their zone, what they may spend in a month, and when their last period ended.
SELECT t.id, t.time_zone, t.monthly_budget_nano,
       (SELECT extract(epoch FROM max(b.period_end))::float8 FROM budget b
        WHERE b.scope = 'tenant' AND b.scope_id = t.id)
FROM tenant t WHERE t.id = ANY(%(tenants)s::bigint[])
ORDER BY t.id;

-- name: open_budgets
-- Begin periods. Zero rows for one that somebody else has begun.
INSERT INTO budget (scope, scope_id, period_start, period_end, limit_nano)
SELECT 'tenant', n.tenant_id, to_timestamp(n.starts_at), to_timestamp(n.ends_at), n.limit_nano
FROM unnest(%(tenants)s::bigint[], %(starts)s::float8[], %(ends)s::float8[], %(limits)s::bigint[])
     AS n(tenant_id, starts_at, ends_at, limit_nano)
ORDER BY n.tenant_id
ON CONFLICT (scope, scope_id, period_start) DO NOTHING
RETURNING scope_id, id, limit_nano, extract(epoch FROM period_end)::float8;

-- name: read_demands
SELECT id, resource_ids, priced, labels FROM demand WHERE id = ANY(%(demands)s::bigint[]);

-- name: start_tasks
-- What a plan says, in one statement. Ready tasks start under fresh leases. A task missing from the result was taken, cancelled or moved meanwhile.
-- The payload comes along for the worker that asks (`me`); others fetch theirs when they pick the lease up. Buckets are
-- left as the plan leaves them: their rows are locked since `lock_dispatch`. Counters, clocks and credits are safe to
-- lose: they shape the order, not the promises.
WITH held AS MATERIALIZED (
    -- Budgets of this plan, locked in id order. One that was lowered meanwhile starts none of its tasks.
    SELECT b.id, b.allowed_nano - b.spent_nano - b.reserved_nano AS headroom
    FROM budget_in_force b WHERE b.id = ANY(%(budgets)s::bigint[])
    ORDER BY b.id
    FOR NO KEY UPDATE
),
short AS MATERIALIZED (
    SELECT coalesce(array_agg(h.id), '{}') AS ids
    FROM held h JOIN unnest(%(budgets)s::bigint[], %(wanted)s::bigint[]) AS n(id, wanted) ON n.id = h.id
    WHERE h.headroom < n.wanted
),
claimed AS (
    UPDATE task t
    SET state = 'running', attempts = t.attempts + 1
    FROM unnest(%(tasks)s::bigint[], %(workers)s::uuid[], %(reserves)s::bigint[], %(held)s::text[], %(capped)s::boolean[])
         WITH ORDINALITY AS w(task_id, worker_id, reserved, budgets, capped, place)
    JOIN task_payload p ON p.task_id = w.task_id
    -- Not written as the index predicate of task_ready_by_lane, whose statistics are always wrong: the optimizer must
    -- find these tasks by their ids, not read the whole backlog.
    WHERE t.id = w.task_id AND t.state || '' = 'ready' AND (t.start_by > clock_timestamp()) IS NOT FALSE
      AND (w.budgets IS NULL OR NOT w.budgets::bigint[] && (SELECT ids FROM short))
    RETURNING nextval('lease_lease_id_seq') AS lease_id, t.id, t.attempts, t.pool_id, t.tenant_id, t.demand_id,
              t.priority, t.amounts, t.ready_at, t.kind, t.key, w.worker_id, w.place, p.timeout_s,
              extract(epoch FROM p.deadline_at)::float8 AS deadline_at,
              CASE WHEN w.worker_id = %(me)s::uuid THEN p.payload END AS payload, p.routing, t.links, p.tags::text AS tags,
              t.cost_nano, w.reserved, w.budgets::bigint[] AS budget_ids, coalesce(w.capped, false) AS capped,
              CASE WHEN w.capped AND w.worker_id = %(me)s::uuid THEN p.pricing::text END AS pricing
),
timed AS (
    SELECT c.*, q.lease_ttl_s, coalesce(c.timeout_s, q.timeout_s) AS limit_s, d.degraded,
           -- Of a task that asked for a capability: what its route says now.
           CASE WHEN d.degraded THEN coalesce(c.routing->>'degraded_model', c.routing->>'model')
                ELSE c.routing->>'model' END AS model
    FROM claimed c
    CROSS JOIN LATERAL (SELECT c.pool_id IN (SELECT pool_id FROM pool_state WHERE degrades) AS degraded) d
    JOIN unnest(%(pools)s::bigint[], %(ttls_s)s::float8[], %(timeouts_s)s::float8[])
         AS q(pool_id, lease_ttl_s, timeout_s) ON q.pool_id = c.pool_id
),
leased AS (
    INSERT INTO lease (lease_id, task_id, attempt, pool_id, tenant_id, demand_id, priority, worker_id, amounts, ready_at,
                       started_at, expires_at, timeout_at, picked_up, degraded, reserved_nano, budget_ids, capped, model,
                       route_id, route_choice)
    SELECT c.lease_id, c.id, c.attempts, c.pool_id, c.tenant_id, c.demand_id, c.priority, c.worker_id, c.amounts,
           c.ready_at, moment.now, moment.now + make_interval(secs => c.lease_ttl_s),
           moment.now + make_interval(secs => c.limit_s), c.worker_id = %(me)s::uuid, c.degraded,
           coalesce(c.reserved, c.cost_nano), c.budget_ids, c.capped, c.model, (c.routing->>'route')::bigint,
           (c.routing->>'choice')::smallint
    FROM timed c CROSS JOIN (SELECT clock_timestamp() AS now) moment
),
reserved AS (
    UPDATE budget b SET reserved_nano = b.reserved_nano + s.amount
    FROM (SELECT i.id, sum(c.reserved)::bigint AS amount FROM claimed c CROSS JOIN LATERAL unnest(c.budget_ids) AS i(id)
          WHERE c.budget_ids IS NOT NULL GROUP BY 1) s
    WHERE b.id = s.id
),
levels AS (
    -- A half-open breaker's probe is the lease of its task, if that was still there. Semaphores have no level of their own.
    UPDATE resource_state s
    SET level = coalesce(n.level, s.level),
        level_at = CASE WHEN n.level IS NULL THEN s.level_at ELSE to_timestamp(%(now)s) END,
        taken_total = s.taken_total + n.taken,
        probe_lease = CASE WHEN n.probe IS NULL THEN s.probe_lease
                           ELSE (SELECT c.lease_id FROM claimed c WHERE c.id = n.probe) END
    FROM unnest(%(resources)s::bigint[], %(levels)s::float8[], %(taken)s::float8[], %(probes)s::bigint[])
         AS n(resource_id, level, taken, probe)
    WHERE s.resource_id = n.resource_id
),
counters AS (
    INSERT INTO fair_counter AS f (tenant_id, priority, value, last_start_at)
    -- In the order in which settlements lock them. The value of a row that exists is a difference: a settlement may have
    -- corrected it since it was read.
    SELECT n.tenant_id, n.priority, n.value, to_timestamp(%(now)s)
    FROM unnest(%(tenants)s::bigint[], %(tenant_classes)s::smallint[], %(values)s::float8[])
         AS n(tenant_id, priority, value)
    ORDER BY n.tenant_id, n.priority
    ON CONFLICT (tenant_id, priority) DO UPDATE SET
        value = f.value + excluded.value, last_start_at = excluded.last_start_at
),
quotas AS (
    INSERT INTO tenant_state AS s (tenant_id, level, level_at)
    SELECT n.tenant_id, n.level, to_timestamp(%(now)s)
    FROM unnest(%(quota_tenants)s::bigint[], %(quota_levels)s::float8[]) AS n(tenant_id, level)
    ON CONFLICT (tenant_id) DO UPDATE SET level = excluded.level, level_at = excluded.level_at
),
asides AS (
    INSERT INTO set_aside AS a (resource_id, priority, task_id, amount, since)
    SELECT n.resource_id, n.priority, n.task_id, n.amount, to_timestamp(%(now)s)
    FROM unnest(%(aside_resources)s::bigint[], %(aside_classes)s::smallint[], %(aside_tasks)s::bigint[],
                %(aside_amounts)s::float8[]) AS n(resource_id, priority, task_id, amount)
    ON CONFLICT (resource_id, priority) DO UPDATE
    SET task_id = excluded.task_id, amount = excluded.amount, since = excluded.since
),
served AS (
    DELETE FROM set_aside a USING unnest(%(served_resources)s::bigint[], %(served_classes)s::smallint[])
        AS n(resource_id, priority)
    WHERE a.resource_id = n.resource_id AND a.priority = n.priority
),
clocks AS (
    INSERT INTO fair_clock AS f (priority, value)
    SELECT n.priority, n.value FROM unnest(%(clock_classes)s::smallint[], %(clocks)s::float8[]) AS n(priority, value)
    ON CONFLICT (priority) DO UPDATE SET value = excluded.value
),
credits AS (
    INSERT INTO class_credit AS c (pool_id, priority, value)
    SELECT n.pool_id, n.priority, n.value
    FROM unnest(%(credit_pools)s::bigint[], %(credit_classes)s::smallint[], %(credits)s::float8[])
         AS n(pool_id, priority, value)
    ON CONFLICT (pool_id, priority) DO UPDATE SET value = excluded.value WHERE c.value <> excluded.value
)
SELECT lease_id, id, attempts, pool_id, tenant_id, kind, key, limit_s, deadline_at, worker_id::text,
       (CASE WHEN model IS NULL THEN payload ELSE payload || jsonb_build_object('model', model) END)::text,
       links & 2 <> 0, degraded, tags, demand_id < 0, reserved, pricing
FROM timed
ORDER BY place;
