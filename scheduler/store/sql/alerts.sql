-- name: raise_alerts
-- Once per budget and threshold: those that were raised before are not in the answer.
WITH raised AS (
    INSERT INTO alert (scope, scope_id, tenant_id, budget_id, threshold, limit_nano, spent_nano)
    SELECT b.scope, b.scope_id, n.tenant_id, b.id, n.threshold, n.limit_nano, n.spent_nano
    FROM unnest(%(budgets)s::bigint[], %(tenants)s::bigint[], %(thresholds)s::float8[], %(limits)s::bigint[],
                %(spents)s::bigint[]) AS n(budget_id, tenant_id, threshold, limit_nano, spent_nano)
    JOIN budget b ON b.id = n.budget_id
    ON CONFLICT (budget_id, threshold) DO NOTHING
    RETURNING *
)
SELECT a.id, a.scope, a.scope_id, a.tenant_id, t.slug, a.threshold, a.limit_nano, a.spent_nano,
       extract(epoch FROM a.at)::float8, extract(epoch FROM b.period_start)::float8,
       extract(epoch FROM b.period_end)::float8, t.time_zone
FROM raised a JOIN tenant t ON t.id = a.tenant_id JOIN budget b ON b.id = a.budget_id
ORDER BY a.id;

-- name: read_alerts
SELECT a.id, a.scope, a.scope_id, t.slug, a.threshold, a.limit_nano, a.spent_nano, extract(epoch FROM a.at)::float8,
       extract(epoch FROM b.period_start)::float8, extract(epoch FROM b.period_end)::float8
FROM alert a JOIN tenant t ON t.id = a.tenant_id JOIN budget b ON b.id = a.budget_id
WHERE (%(tenant)s::bigint IS NULL OR a.tenant_id = %(tenant)s) AND (%(before)s::bigint IS NULL OR a.id < %(before)s)
ORDER BY a.id DESC LIMIT %(rows_max)s;
