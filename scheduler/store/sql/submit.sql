-- name: read_pool_terms
SELECT name, id, max_attempts, duration_default_s FROM pool WHERE name = ANY(%(names)s);

-- name: find_demand
SELECT id FROM demand WHERE resource_ids = %(resources)s::bigint[];

-- name: add_demand
-- Zero rows: another submission added the same set at the same time; look again.
INSERT INTO demand (resource_ids) VALUES (%(resources)s::bigint[])
ON CONFLICT (resource_ids) DO NOTHING
RETURNING id;

-- name: reserve_task_ids
SELECT nextval('task_id_seq') FROM generate_series(1, %(count)s);

-- name: insert_tasks
-- Insert tasks with their payloads under ids reserved before. A task missing from the result has a key that this
-- tenant has used before.
WITH added AS (
    INSERT INTO task (id, tenant_id, pool_id, demand_id, priority, state, max_attempts, ready_at, due_at, latest_start,
                      expected_s, amounts, kind, key)
    SELECT n.id, n.tenant_id, n.pool_id, n.demand_id, n.priority, n.state, n.max_attempts, to_timestamp(n.ready_at),
           to_timestamp(n.due_at), to_timestamp(n.latest_start), n.expected_s, n.amounts::float8[], n.kind, n.key
    FROM unnest(%(ids)s::bigint[], %(tenants)s::bigint[], %(pools)s::bigint[], %(demands)s::bigint[],
                %(priorities)s::smallint[], %(states)s::text[], %(max_attempts)s::smallint[], %(ready_ats)s::float8[],
                %(due_ats)s::float8[], %(latest_starts)s::float8[], %(expected_s)s::float8[], %(amounts)s::text[],
                %(kinds)s::text[], %(keys)s::text[])
         AS n(id, tenant_id, pool_id, demand_id, priority, state, max_attempts, ready_at, due_at, latest_start,
              expected_s, amounts, kind, key)
    ON CONFLICT (tenant_id, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id
),
carried AS (
    INSERT INTO task_payload (task_id, tenant_id, payload, fingerprint, deadline_at, timeout_s, retry, tags)
    SELECT n.id, n.tenant_id, n.payload, n.fingerprint, to_timestamp(n.deadline_at), n.timeout_s, n.retry, n.tags
    FROM unnest(%(ids)s::bigint[], %(tenants)s::bigint[], %(payloads)s::jsonb[], %(fingerprints)s::bytea[], %(deadline_ats)s::float8[],
                %(timeouts_s)s::float8[], %(retries)s::jsonb[], %(tags)s::jsonb[])
         AS n(id, tenant_id, payload, fingerprint, deadline_at, timeout_s, retry, tags)
    JOIN added USING (id)
)
SELECT id FROM added;

-- name: find_by_key
SELECT n.place, t.id, t.state, p.fingerprint
FROM unnest(%(tenants)s::bigint[], %(keys)s::text[]) WITH ORDINALITY AS n(tenant_id, key, place)
JOIN task t ON t.tenant_id = n.tenant_id AND t.key = n.key
JOIN task_payload p ON p.task_id = t.id;
