-- Fills a database with what the console has to show, in bulk and by counting: row n is the same in every filling.
-- Old things are spread so that most of them are of the last days, as after a bad night.

-- name: add_demands
INSERT INTO demand (resource_ids) SELECT ARRAY[id] FROM resource ORDER BY id;

-- name: add_tasks
-- Tasks `first` to `last`; the state by their number: dead up to one, succeeded up to another, and then ready.
WITH world AS (
    SELECT array_agg(id ORDER BY id) AS pools,
           (SELECT array_agg(id ORDER BY id) FROM tenant) AS tenants,
           (SELECT array_agg(id ORDER BY id) FROM demand WHERE id > 0) AS demands
    FROM pool
),
one AS (
    SELECT n, w.tenants[1 + n %% cardinality(w.tenants)] AS tenant_id,
           w.pools[1 + n %% cardinality(w.tenants) %% cardinality(w.pools)] AS pool_id,
           w.demands[1 + n %% cardinality(w.tenants) %% cardinality(w.demands)] AS demand_id,
           CASE WHEN n <= %(dead)s THEN 'dead_lettered' WHEN n <= %(dead)s + %(done)s THEN 'succeeded' ELSE 'ready' END AS state,
           now() - make_interval(secs => CASE
               WHEN n <= %(dead)s THEN 30 * 86400 * (1 - n::float8 / %(dead)s) ^ 3
               WHEN n <= %(dead)s + %(done)s THEN 90 * 86400 * (1 - (n - %(dead)s)::float8 / %(done)s) ^ 3
               ELSE 3600 * (1 - (n - %(dead)s - %(done)s)::float8 / %(waiting)s) END) AS at
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) n CROSS JOIN world w
),
task_added AS (
    INSERT INTO task (id, tenant_id, pool_id, demand_id, priority, state, attempts, max_attempts, created_at, ready_at,
                      finished_at, expected_s, amounts, kind)
    OVERRIDING SYSTEM VALUE
    SELECT n, tenant_id, pool_id, demand_id, n %% 4, state, CASE WHEN state = 'ready' THEN 0 ELSE 1 END, 3,
           at - interval '20 s', at - interval '19 s', CASE WHEN state <> 'ready' THEN at END, 1, '{1}',
           'kind-' || n %% 40
    FROM one
),
payload_added AS (
    INSERT INTO task_payload (task_id, tenant_id, payload)
    SELECT n, tenant_id, '{"prompt": "Summarise the attached report in three sentences, for somebody who is in a hurry."}' FROM one
),
attempt_added AS (
    INSERT INTO attempt (task_id, lease_id, number, pool_id, tenant_id, priority, worker_id, ready_at, started_at,
                         finished_at, outcome, failure_class, message)
    SELECT n, n, 1, pool_id, tenant_id, n %% 4, '00000000-0000-4000-8000-000000000000', at - interval '19 s',
           at - make_interval(secs => 1 + n %% 17), at, CASE state WHEN 'succeeded' THEN 'succeeded' ELSE 'failed' END,
           CASE state WHEN 'succeeded' THEN NULL ELSE 'overloaded' END,
           CASE state WHEN 'succeeded' THEN NULL ELSE 'upstream answered 500 for request ' || n END
    FROM one WHERE state <> 'ready'
),
ledger_added AS (
    INSERT INTO ledger_entry (lease_id, line, at, tenant_id, pool_id, task_id, budget_ids, kind, model, priority,
                              provider_cost_nano, tenant_charge_nano, usage_source, price_source, outcome)
    SELECT n, 0, at, tenant_id, pool_id, n, '{}', 'kind-' || n %% 40, 'model-' || n %% 8, n %% 4, 1000 * (1 + n %% 900), 1000,
           'reported', 'operator', CASE state WHEN 'succeeded' THEN 'success' ELSE 'waste' END
    FROM one WHERE state <> 'ready' ORDER BY at
)
INSERT INTO dead_letter (task_id, fingerprint, tenant_id, pool_id, kind, failure_class, message, died_at)
-- A few ways to die have most of the dead.
SELECT n, 1 + (%(groups)s * (n * 7919 %% 10007 / 10007.0) ^ 3)::bigint * 1000003, tenant_id, pool_id, 'kind-' || n %% 40, 'overloaded',
       'upstream answered 500 for request ' || n, at
FROM one WHERE state = 'dead_lettered' ORDER BY n;

-- name: go_on_behind
-- New rows get numbers behind those that were written by number.
SELECT setval(pg_get_serial_sequence('task', 'id'), %(last)s), setval(pg_get_serial_sequence('lease', 'lease_id'), %(last)s);

-- name: add_predictions
INSERT INTO forecast_log (pool_id, priority, task_id, said_at, ready_at, raw_p50_s, raw_p90_s, p50_s, p90_s, wait_s)
SELECT w.pools[1 + n %% cardinality(w.pools)], n %% 4, n, now() - make_interval(secs => n %% 3600), 0, 1, 2, 1, 2, n %% 3
FROM generate_series(1, %(predictions)s) n CROSS JOIN (SELECT array_agg(id) AS pools FROM pool) w;

-- name: add_audit
INSERT INTO audit_event (at, actor, source, action, subject, reason)
SELECT now() - make_interval(secs => 10 * (%(audit)s - n)), 'person-' || n %% 50, (ARRAY['ui', 'api'])[1 + n %% 2],
       'pool.' || (ARRAY['pause', 'resume', 'edit'])[1 + n %% 3], 'pool:crowd-' || n %% 12, 'entry ' || n
FROM generate_series(1, %(audit)s) n;

-- name: refresh_statistics
VACUUM (ANALYZE);

-- name: look_anew
SELECT pg_stat_clear_snapshot();

-- name: count_transactions
SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database();
