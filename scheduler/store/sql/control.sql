-- name: read_tenants
SELECT id, slug, name, weight, status, time_zone, version, monthly_budget_nano, alert_at, start_rate, start_burst,
       max_in_flight, max_queued, max_steps_per_run, max_width_per_run, max_cost_per_run_nano
FROM tenant
WHERE %(slugs)s::text[] IS NULL OR slug = ANY(%(slugs)s)
ORDER BY slug;

-- name: read_run_quota
SELECT max_steps_per_run, max_width_per_run, max_cost_per_run_nano FROM tenant WHERE id = %(tenant)s;

-- name: add_tenant
INSERT INTO tenant (slug, name, weight, status, time_zone, start_rate, start_burst, max_in_flight, max_queued,
                    max_steps_per_run, max_width_per_run, max_cost_per_run_nano)
VALUES (%(slug)s, %(name)s, %(weight)s, 'active', %(time_zone)s, %(start_rate)s, %(start_burst)s, %(max_in_flight)s,
        %(max_queued)s, %(max_steps_per_run)s, %(max_width_per_run)s, %(max_cost_per_run_nano)s)
ON CONFLICT (slug) DO NOTHING
RETURNING id;

-- name: edit_tenant
-- Zero rows: the version moved on, or there is no such tenant. What the start bucket got at its old rate until now stays,
-- as far as it fits; one that has no rate any more is forgotten, so that the next begins full.
WITH declared AS (
    SELECT id, start_rate, start_burst FROM tenant WHERE slug = %(slug)s AND version = %(version)s FOR NO KEY UPDATE
),
edited AS (
    UPDATE tenant t
    SET name = %(name)s, weight = %(weight)s, status = %(status)s, time_zone = %(time_zone)s,
        start_rate = %(start_rate)s, start_burst = %(start_burst)s, max_in_flight = %(max_in_flight)s,
        max_queued = %(max_queued)s, max_steps_per_run = %(max_steps_per_run)s,
        max_width_per_run = %(max_width_per_run)s, max_cost_per_run_nano = %(max_cost_per_run_nano)s, version = t.version + 1
    FROM declared d WHERE t.id = d.id
    RETURNING t.id, t.version, t.start_burst
),
forgotten AS (
    DELETE FROM tenant_state s USING edited e WHERE s.tenant_id = e.id AND e.start_burst IS NULL
),
dated AS (
    UPDATE tenant_state s
    SET level = least(e.start_burst, d.start_burst, s.level + d.start_rate
                      * greatest(0, extract(epoch FROM moment.now - s.level_at)::float8)),
        level_at = moment.now
    FROM declared d JOIN edited e ON e.id = d.id CROSS JOIN (SELECT clock_timestamp() AS now) moment
    WHERE s.tenant_id = d.id AND e.start_burst IS NOT NULL
)
SELECT version FROM edited;

-- name: seat_as_idle
-- Everything that waits became ready later than this: see `policy/fairness.py`.
UPDATE fair_counter SET last_start_at = 'epoch' WHERE tenant_id = %(tenant)s;

-- name: read_tenant_use
SELECT t.id, coalesce(l.n, 0), coalesce(d.n, 0)::bigint, s.level, extract(epoch FROM s.level_at)::float8,
       extract(epoch FROM clock_timestamp())::float8
FROM tenant t
LEFT JOIN tenant_state s ON s.tenant_id = t.id
LEFT JOIN (SELECT tenant_id, count(*) AS n FROM lease GROUP BY 1) l ON l.tenant_id = t.id
LEFT JOIN (
    SELECT tenant_id, sum(n) AS n
    FROM (SELECT scope_id AS tenant_id, waiting AS n FROM waiting_depth WHERE scope = 'tenant'
          UNION ALL
          SELECT tenant_id, n FROM task_change WHERE counter IN ('blocked', 'scheduled', 'ready', 'retrying')) AS parts
    GROUP BY 1
) d ON d.tenant_id = t.id
WHERE t.id = ANY(%(tenants)s);

-- name: read_pools
SELECT id, name, executor, config::text, slots_min, slots_max, slots, max_attempts, backoff_initial_s, backoff_multiplier,
       backoff_max_s, lease_ttl_s, timeout_s, duration_default_s, slo::text, autoscale::text, unknown_dependency,
       await_timeout_s, max_pending, overflow, allow_degraded, reservable_fraction, worker_second_nano,
       extract(epoch FROM paused_at)::float8, paused_by, pause_reason, version, extract(epoch FROM resume_at)::float8
FROM pool
WHERE %(names)s::text[] IS NULL OR name = ANY(%(names)s)
ORDER BY name;

-- name: add_pool
INSERT INTO pool (name, executor, config, slots_min, slots_max, slots, max_attempts, backoff_initial_s,
                  backoff_multiplier, backoff_max_s, lease_ttl_s, timeout_s, duration_default_s, slo,
                  autoscale, unknown_dependency, await_timeout_s, max_pending, overflow, allow_degraded,
                  reservable_fraction, worker_second_nano, paused_by, pause_reason)
VALUES (%(name)s, %(executor)s, %(config)s::jsonb, %(slots_min)s, %(slots_max)s, %(slots)s, %(max_attempts)s,
        %(backoff_initial_s)s, %(backoff_multiplier)s, %(backoff_max_s)s, %(lease_ttl_s)s, %(timeout_s)s,
        %(duration_default_s)s, %(slo)s::jsonb, %(autoscale)s::jsonb, %(unknown_dependency)s, %(await_timeout_s)s,
        %(max_pending)s, %(overflow)s, %(allow_degraded)s, %(reservable_fraction)s,
        %(worker_second_nano)s, '', '')
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: edit_pool
-- Zero rows: the version moved on.
UPDATE pool
SET config = %(config)s::jsonb, slots_min = %(slots_min)s, slots_max = %(slots_max)s, slots = %(slots)s,
    max_attempts = %(max_attempts)s, backoff_initial_s = %(backoff_initial_s)s,
    backoff_multiplier = %(backoff_multiplier)s, backoff_max_s = %(backoff_max_s)s, lease_ttl_s = %(lease_ttl_s)s,
    timeout_s = %(timeout_s)s, duration_default_s = %(duration_default_s)s, slo = %(slo)s::jsonb,
    autoscale = %(autoscale)s::jsonb, unknown_dependency = %(unknown_dependency)s, await_timeout_s = %(await_timeout_s)s,
    max_pending = %(max_pending)s, overflow = %(overflow)s, allow_degraded = %(allow_degraded)s,
    reservable_fraction = %(reservable_fraction)s, worker_second_nano = %(worker_second_nano)s, version = version + 1
WHERE name = %(name)s AND version = %(version)s
RETURNING version;

-- name: pause_pool
-- Zero rows: it is paused already.
UPDATE pool SET paused_at = clock_timestamp(), paused_by = %(actor)s, pause_reason = %(reason)s,
    resume_at = clock_timestamp() + make_interval(secs => %(for_s)s), version = version + 1
WHERE name = %(name)s AND paused_at IS NULL
RETURNING version;

-- name: resume_pool
-- Zero rows: it is not paused.
UPDATE pool SET paused_at = NULL, paused_by = '', pause_reason = '', resume_at = NULL, version = version + 1
WHERE name = %(name)s AND paused_at IS NOT NULL
RETURNING version;

-- name: end_pauses
-- Resume the pools whose pause was to end by now; who had paused them and why. One that is being changed waits a turn.
WITH due AS (
    SELECT id, name, paused_by, pause_reason FROM pool
    WHERE paused_at IS NOT NULL AND resume_at <= clock_timestamp()
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE pool p SET paused_at = NULL, paused_by = '', pause_reason = '', resume_at = NULL, version = p.version + 1
FROM due WHERE p.id = due.id
RETURNING due.name, due.paused_by, due.pause_reason;

-- name: add_token
INSERT INTO api_token (public_id, secret_sha256, name, tenant_id, scopes, pools, expires_at)
VALUES (%(public_id)s, %(secret_sha256)s, %(name)s, %(tenant)s, %(scopes)s, %(pools)s,
        to_timestamp(%(expires_at)s));

-- name: find_token
-- A token that may be used now; expired, revoked and unknown ones look the same.
SELECT k.public_id, k.secret_sha256, k.tenant_id, t.slug, t.status, k.scopes, k.pools,
       coalesce(k.last_used_at > clock_timestamp() - interval '10 minutes', false)
FROM api_token k LEFT JOIN tenant t ON t.id = k.tenant_id
WHERE k.public_id = %(public_id)s AND k.revoked_at IS NULL
  AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp());

-- name: revoke_token
UPDATE api_token SET revoked_at = clock_timestamp() WHERE public_id = %(public_id)s AND revoked_at IS NULL;

-- name: find_idempotency_record
SELECT fingerprint, status, body::text FROM idempotency_record WHERE scope = %(scope)s AND key = %(key)s;

-- name: lock_idempotency_key
-- Two requests with one key at the same time: the second waits for the first, then finds its answer.
SELECT pg_advisory_xact_lock(hashtextextended(%(scope)s || ' ' || %(key)s, 25457));

-- name: add_idempotency_record
INSERT INTO idempotency_record (scope, key, fingerprint, status, body)
VALUES (%(scope)s, %(key)s, %(fingerprint)s, %(status)s, %(body)s::jsonb);

-- name: prune_idempotency_records
DELETE FROM idempotency_record WHERE created_at < clock_timestamp() - make_interval(secs => %(keep_s)s);

-- name: read_vital_signs
-- Seconds since an engine was seen and since a task started (no row: never), and ready tasks of pools that run.
SELECT (SELECT extract(epoch FROM clock_timestamp() - max(seen_at))::float8 FROM worker WHERE kind = 'engine'),
       (SELECT extract(epoch FROM clock_timestamp() - max(last_start_at))::float8 FROM fair_counter),
       (SELECT coalesce(sum(c.n), 0)::bigint
        FROM (SELECT pool_id, n FROM task_count WHERE counter = 'ready'
              UNION ALL
              SELECT pool_id, n FROM task_change WHERE counter = 'ready') AS c
        JOIN pool p ON p.id = c.pool_id AND p.paused_at IS NULL);

-- name: promise_not_to_write
SET TRANSACTION READ ONLY;
