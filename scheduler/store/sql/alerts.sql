-- name: raise_alerts
-- Once per budget and threshold: zero rows for one that was raised before.
INSERT INTO alert (scope, scope_id, tenant_id, budget_id, threshold, limit_nano, spent_nano)
SELECT b.scope, b.scope_id, n.tenant_id, b.id, n.threshold, n.limit_nano, n.spent_nano
FROM unnest(%(budgets)s::bigint[], %(tenants)s::bigint[], %(thresholds)s::float8[], %(limits)s::bigint[],
            %(spents)s::bigint[]) AS n(budget_id, tenant_id, threshold, limit_nano, spent_nano)
JOIN budget b ON b.id = n.budget_id
ON CONFLICT (budget_id, threshold) DO NOTHING;

-- name: take_due
-- Alerts to tell now, with who listens. Whoever takes one has until the next try to tell it.
WITH due AS (
    SELECT id FROM alert WHERE next_at <= clock_timestamp() ORDER BY next_at LIMIT %(alerts_max)s
    FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE alert a
    SET tries = a.tries + 1, next_at = clock_timestamp() + make_interval(secs => %(first_s)s * power(2, a.tries))
    FROM due WHERE a.id = due.id
    RETURNING a.*
)
SELECT a.id, a.scope, a.scope_id, t.slug, a.threshold, a.limit_nano, a.spent_nano, extract(epoch FROM a.at)::float8,
       a.tries, extract(epoch FROM b.period_start)::float8, extract(epoch FROM b.period_end)::float8, t.time_zone,
       (SELECT json_agg(json_build_array(g.url, g.secret) ORDER BY g.id) FROM alert_target g
        WHERE g.tenant_id = a.tenant_id OR g.tenant_id IS NULL)::text
FROM taken a JOIN tenant t ON t.id = a.tenant_id JOIN budget b ON b.id = a.budget_id
ORDER BY a.id;

-- name: end_telling
-- It was told, or nobody is left who might be.
UPDATE alert SET next_at = NULL, told_at = CASE WHEN %(fault)s = '' THEN clock_timestamp() END, fault = %(fault)s
WHERE id = %(alert)s;

-- name: note_fault
UPDATE alert SET fault = %(fault)s WHERE id = %(alert)s;

-- name: read_alerts
SELECT a.id, a.scope, a.scope_id, t.slug, a.threshold, a.limit_nano, a.spent_nano, extract(epoch FROM a.at)::float8,
       extract(epoch FROM b.period_start)::float8, extract(epoch FROM b.period_end)::float8,
       extract(epoch FROM a.told_at)::float8, a.fault
FROM alert a JOIN tenant t ON t.id = a.tenant_id JOIN budget b ON b.id = a.budget_id
WHERE (%(tenant)s::bigint IS NULL OR a.tenant_id = %(tenant)s) AND (%(before)s::bigint IS NULL OR a.id < %(before)s)
ORDER BY a.id DESC LIMIT %(rows_max)s;

-- name: add_target
INSERT INTO alert_target (tenant_id, url, secret) VALUES (%(tenant)s, %(url)s, %(secret)s)
ON CONFLICT (tenant_id, url) DO NOTHING
RETURNING id;

-- name: read_targets
SELECT g.id, t.slug, g.url FROM alert_target g LEFT JOIN tenant t ON t.id = g.tenant_id ORDER BY g.id;

-- name: remove_target
DELETE FROM alert_target g WHERE g.id = %(target)s
RETURNING g.url, (SELECT slug FROM tenant t WHERE t.id = g.tenant_id);
