-- name: read_terms
-- The time, the pools and the limits that submissions name, with what was learned of how long their kinds take; then what
-- these pools and tenants bear, and the most that can be waiting there at this moment: the depth at the last fold, what
-- ran then and may have come back, and every task id that was drawn since the fold before it, by whomever.
-- The names come through sub-selects, so that the optimizer sees no numbers in them: then no plan of its own for each
-- call looks better than the one that is kept, and making one costs more than running it.
SELECT
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT json_agg(json_build_array(name, id, max_attempts, duration_default_s, unknown_dependency,
                                      await_timeout_s, slots_max, reservable_fraction,
                                      executor, CASE WHEN executor = 'llm' THEN config END, worker_second_nano, timeout_s,
                                      (SELECT json_object_agg(d.kind, d.p90_s) FROM learned_duration d
                                       WHERE d.pool_id = pool.id AND d.kind = ANY((SELECT %(kinds)s::text[])::text[])))) FROM pool
     WHERE name = ANY((SELECT %(pools)s::text[])::text[]))::text,
    -- Beside those that submissions name, the ones in which these pools count the tokens of their calls.
    (SELECT json_agg(json_build_array(name, id, kind, rate, burst, permits)) FROM resource
     WHERE name = ANY((SELECT %(resources)s::text[])::text[] || coalesce(
         (SELECT array_agg(counted.key #>> '{}')
          FROM pool p, LATERAL (
              SELECT jsonb_path_query(p.config, '$.tokens.keyvalue().key', silent => true)
              UNION
              SELECT jsonb_path_query(p.config, '$.models.*.tokens.keyvalue().key', silent => true)
          ) AS counted(key)
          WHERE p.name = ANY((SELECT %(pools)s::text[])::text[]) AND p.executor = 'llm'), '{}')))::text,
    -- Depths one by one: a join would be planned as a look at every tenant's.
    (SELECT json_agg(json_build_array(
                p.id, p.name, p.max_pending, p.overflow,
                coalesce((SELECT d.waiting + d.running FROM waiting_depth d
                          WHERE d.scope = 'pool' AND d.scope_id = p.id), 0) + ids.since,
                coalesce(s.level, 0), coalesce(s.degrades, false), s.predicted_s, coalesce(s.started_per_s, 0)))
     FROM pool p LEFT JOIN pool_state s ON s.pool_id = p.id
     WHERE p.name = ANY((SELECT %(pools)s::text[])::text[]))::text,
    (SELECT json_agg(json_build_array(
                t.id, t.slug, t.max_queued,
                coalesce((SELECT d.waiting + d.running FROM waiting_depth d
                          WHERE d.scope = 'tenant' AND d.scope_id = t.id), 0) + ids.since))
     FROM tenant t
     WHERE t.id = ANY((SELECT %(tenants)s::bigint[])::bigint[]) AND t.max_queued IS NOT NULL)::text
FROM (SELECT last_value - coalesce((SELECT before_task_id FROM fold_mark WHERE id = 1), 0) AS since
      FROM task_id_seq OFFSET 0) ids;

-- name: find_demand
SELECT id FROM demand
WHERE resource_ids = %(resources)s::bigint[] AND priced = %(priced)s AND labels = %(labels)s::varchar[]
  AND run_id IS NULL;

-- name: count_labelled_demands
SELECT count(*) FROM demand WHERE labels <> '{}' AND run_id IS NULL;

-- name: add_demand
-- Zero rows: another submission added the same set at the same time; look again.
INSERT INTO demand (resource_ids, priced, labels)
VALUES (%(resources)s::bigint[], %(priced)s, %(labels)s::varchar[])
ON CONFLICT (resource_ids, priced, labels) WHERE run_id IS NULL DO NOTHING
RETURNING id;

-- name: insert_tasks
-- Insert tasks with their payloads, ids ascending in the order given. A place missing from the result has a key that
-- this tenant has used before.
WITH given AS MATERIALIZED (
    SELECT nextval('task_id_seq') AS id, n.*
    FROM unnest(%(tenants)s::bigint[], %(pools)s::bigint[], %(demands)s::bigint[], %(priorities)s::smallint[],
                %(states)s::text[], %(max_attempts)s::smallint[], %(ready_ats)s::float8[], %(due_ats)s::float8[],
                %(latest_starts)s::float8[], %(expected_s)s::float8[], %(amounts)s::text[], %(kinds)s::text[],
                %(keys)s::text[], %(payloads)s::jsonb[], %(fingerprints)s::bytea[], %(deadline_ats)s::float8[],
                %(timeouts_s)s::float8[], %(retries)s::jsonb[], %(tags)s::jsonb[], %(links)s::smallint[],
                %(groups)s::bigint[], %(start_bys)s::float8[], %(costs)s::bigint[], %(costs_min)s::bigint[],
                %(pricings)s::jsonb[], %(runs)s::bigint[])
         WITH ORDINALITY
         AS n(tenant_id, pool_id, demand_id, priority, state, max_attempts, ready_at, due_at, latest_start, expected_s,
              amounts, kind, key, payload, fingerprint, deadline_at, timeout_s, retry, tags, links, group_id,
              start_by, cost_nano, cost_min_nano, pricing, run_id, place)
),
added AS (
    INSERT INTO task (id, tenant_id, pool_id, demand_id, priority, state, max_attempts, ready_at, due_at, latest_start,
                      expected_s, amounts, kind, key, links, start_by, finished_at, cost_nano, cost_min_nano)
    SELECT id, tenant_id, pool_id, demand_id, priority, state, max_attempts, to_timestamp(ready_at),
           to_timestamp(due_at), to_timestamp(latest_start), expected_s, amounts::float8[], kind, key, links,
           to_timestamp(start_by),
           CASE WHEN state = 'skipped' THEN clock_timestamp() END, cost_nano, cost_min_nano
    FROM given
    ON CONFLICT (tenant_id, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id
),
carried AS (
    INSERT INTO task_payload (task_id, tenant_id, payload, fingerprint, deadline_at, timeout_s, retry, tags, group_id,
                              pricing, run_id)
    SELECT g.id, g.tenant_id, g.payload, g.fingerprint, to_timestamp(g.deadline_at), g.timeout_s, g.retry, g.tags,
           g.group_id, g.pricing, g.run_id
    FROM given g JOIN added USING (id)
)
SELECT g.place, g.id FROM given g JOIN added USING (id);

-- name: find_by_key
SELECT n.place, t.id, t.state, p.fingerprint
FROM unnest(%(tenants)s::bigint[], %(keys)s::text[]) WITH ORDINALITY AS n(tenant_id, key, place)
JOIN task t ON t.tenant_id = n.tenant_id AND t.key = n.key
JOIN task_payload p ON p.task_id = t.id;
