-- name: lock_budgets
-- Budgets that are about to be charged, in the order in which dispatch locks them.
SELECT b.id, b.allowed_nano, b.spent_nano, b.reserved_nano, extract(epoch FROM b.period_end)::float8,
       (SELECT t.alert_at FROM tenant t WHERE b.scope = 'tenant' AND t.id = b.scope_id)
FROM budget_in_force b
WHERE b.id = ANY(%(budgets)s::bigint[])
ORDER BY b.id
FOR NO KEY UPDATE;

-- name: book_charges
-- Replace reservations by charges, and append to the ledger what was charged. A line that is there stays as it is.
WITH held AS MATERIALIZED (
    -- In the order in which dispatch locks them.
    SELECT b.id, b.allowed_nano,
           (SELECT t.alert_at FROM tenant t WHERE b.scope = 'tenant' AND t.id = b.scope_id) AS alert_at
    FROM budget_in_force b
    WHERE b.id = ANY(%(budgets)s::bigint[])
    ORDER BY b.id
    FOR NO KEY UPDATE
),
charged AS (
    UPDATE budget b SET spent_nano = b.spent_nano + n.spent, reserved_nano = b.reserved_nano - n.freed
    FROM unnest(%(budgets)s::bigint[], %(spent)s::bigint[], %(freed)s::bigint[]) AS n(id, spent, freed)
    JOIN held h ON h.id = n.id
    WHERE b.id = n.id
    RETURNING b.id, h.allowed_nano, b.spent_nano, h.alert_at
),
alike AS MATERIALIZED (
    SELECT a.*, a.held::bigint[] AS budget_ids,
           (SELECT b.scope_id FROM budget b WHERE b.id = ANY(a.held::bigint[]) AND b.scope = 'run') AS run_id
    FROM unnest(%(tenants)s::bigint[], %(pools)s::bigint[], %(held)s::text[], %(kinds)s::text[], %(priorities)s::smallint[],
                %(models)s::text[], %(usage_sources)s::text[], %(price_sources)s::text[], %(outcomes)s::text[])
         WITH ORDINALITY AS a(tenant_id, pool_id, held, kind, priority, model, usage_source, price_source, outcome, place)
),
entered AS (
    INSERT INTO ledger_entry (lease_id, line, at, tenant_id, pool_id, task_id, run_id, budget_ids, kind, priority, model,
                              provider_cost_nano, tenant_charge_nano, usage, usage_source, price_source, outcome)
    SELECT n.lease_id, n.line, clock_timestamp(), a.tenant_id, a.pool_id, n.task_id, a.run_id, a.budget_ids, a.kind,
           a.priority, a.model, n.cost, n.charge, n.usage, a.usage_source, a.price_source, a.outcome
    FROM unnest(%(leases)s::bigint[], %(lines)s::smallint[], %(tasks)s::bigint[], %(costs)s::bigint[],
                %(charges)s::bigint[], %(usages)s::jsonb[], %(places)s::int[])
         AS n(lease_id, line, task_id, cost, charge, usage, place)
    JOIN alike a ON a.place = n.place
    ON CONFLICT (lease_id, line) DO NOTHING
)
SELECT id, allowed_nano, spent_nano, alert_at FROM charged;

-- name: read_prices_of
-- Operators' prices of these models, whenever they are valid.
SELECT model, provider, input_nano, output_nano, cache_read_nano, cache_write_nano, cache_write_1h_nano,
       extract(epoch FROM valid_from)::float8, extract(epoch FROM valid_to)::float8
FROM price
WHERE model = ANY(%(models)s::text[]);


-- name: read_budgets
-- Tenants with the budget of their present period; those that have none yet with where their last one ended.
SELECT t.id, t.slug, t.time_zone, t.version, t.monthly_budget_nano, t.alert_at, t.success_target_nano,
       (SELECT extract(epoch FROM max(o.period_end))::float8 FROM budget o
        WHERE o.scope = 'tenant' AND o.scope_id = t.id AND o.period_end <= statement_timestamp()),
       b.id, b.allowed_nano, b.spent_nano, b.reserved_nano, extract(epoch FROM b.period_start)::float8,
       extract(epoch FROM b.period_end)::float8, u.nano, extract(epoch FROM u.until)::float8,
       CASE WHEN coalesce(b.spent_nano, 0) = 0 THEN 0
            ELSE burn_nano_per_hour(b.spent_nano, m.old_nano, m.old_at, statement_timestamp()) END,
       extract(epoch FROM clock_timestamp())::float8
FROM tenant t
LEFT JOIN LATERAL (
    SELECT * FROM budget_in_force b
    WHERE b.scope = 'tenant' AND b.scope_id = t.id AND b.period_end > statement_timestamp()
    ORDER BY b.period_start DESC LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT sum(n.nano)::bigint AS nano, min(n.until) AS until
    FROM unnest(b.top_up_nanos, b.top_up_untils) AS n(nano, until) WHERE n.until > clock_timestamp()
) u ON true
LEFT JOIN burn_mark m ON m.budget_id = b.id
WHERE (%(tenant)s::bigint IS NULL OR t.id = %(tenant)s) AND (%(slugs)s::text[] IS NULL OR t.slug = ANY(%(slugs)s))
ORDER BY t.slug;

-- name: edit_monthly
-- Zero rows: the version moved on, or there is no such tenant.
UPDATE tenant SET monthly_budget_nano = %(limit)s, alert_at = %(alert_at)s::float8[], success_target_nano = %(target)s,
                  version = version + 1
WHERE slug = %(slug)s AND version = %(version)s
RETURNING version;

-- name: edit_period
-- The present period follows.
UPDATE budget SET limit_nano = %(limit)s WHERE id = %(budget)s;

-- name: read_task_cost
SELECT t.cost_nano, coalesce(t.cost_min_nano, 0), t.tenant_id FROM task t WHERE t.id = %(task)s AND t.cost_nano > 0;

-- name: read_cost
-- What was spent in [from, to), by what is asked for; the row with `total` is all of it. A success counts with the first
-- line of its attempt.
SELECT tenant, pool, kind, model, grouping(tenant) = 1, coalesce(sum(cost), 0)::bigint,
       coalesce(sum(charge), 0)::bigint,
       coalesce(sum(cost) FILTER (WHERE outcome = 'waste'), 0)::bigint,
       count(*) FILTER (WHERE outcome = 'success' AND (line = 0 OR NOT EXISTS (
           SELECT FROM ledger_entry o WHERE o.lease_id = entries.lease_id AND o.line < entries.line)))
FROM (
    SELECT CASE WHEN %(by_tenant)s THEN t.slug END AS tenant, CASE WHEN %(by_pool)s THEN q.name END AS pool,
           CASE WHEN %(by_kind)s THEN e.kind END AS kind, CASE WHEN %(by_model)s THEN e.model END AS model,
           e.lease_id, e.line, e.outcome, e.provider_cost_nano AS cost, e.tenant_charge_nano AS charge
    FROM ledger_entry e JOIN tenant t ON t.id = e.tenant_id JOIN pool q ON q.id = e.pool_id
    WHERE e.at >= to_timestamp(%(starts)s) AND e.at < to_timestamp(%(ends)s)
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
) entries
GROUP BY GROUPING SETS ((tenant, pool, kind, model), ())
ORDER BY grouping(tenant) DESC, 6 DESC
LIMIT %(rows_max)s;

-- name: read_drift
-- Budgets that do not say what the ledger and the live leases say.
SELECT b.id, b.scope, b.scope_id, b.spent_nano, b.reserved_nano, coalesce(l.spent, 0)::bigint,
       coalesce(h.reserved, 0)::bigint
FROM budget b
LEFT JOIN (SELECT i.id, sum(e.tenant_charge_nano) AS spent
           FROM ledger_entry e CROSS JOIN LATERAL unnest(e.budget_ids) AS i(id) GROUP BY 1) l ON l.id = b.id
LEFT JOIN (SELECT i.id, sum(s.reserved_nano) AS reserved
           FROM lease s CROSS JOIN LATERAL unnest(s.budget_ids) AS i(id) GROUP BY 1) h ON h.id = b.id
WHERE (%(budgets)s::bigint[] IS NULL OR b.id = ANY(%(budgets)s))
  AND (b.spent_nano <> coalesce(l.spent, 0) OR b.reserved_nano <> coalesce(h.reserved, 0))
ORDER BY b.id;

-- name: correct_budget
UPDATE budget SET spent_nano = %(spent)s, reserved_nano = %(reserved)s WHERE id = %(budget)s;

-- name: read_prices
SELECT id, model, provider, input_nano, output_nano, cache_read_nano, cache_write_nano, cache_write_1h_nano,
       extract(epoch FROM valid_from)::float8, extract(epoch FROM valid_to)::float8, version
FROM price
WHERE (%(price)s::bigint IS NULL OR id = %(price)s) AND (%(model)s::text IS NULL OR model = %(model)s)
ORDER BY model, provider, valid_from;

-- name: add_price
-- Zero rows: there is one of this model from this moment on.
INSERT INTO price (model, provider, input_nano, output_nano, cache_read_nano, cache_write_nano, cache_write_1h_nano,
                   valid_from, valid_to)
VALUES (%(model)s, %(provider)s, %(input)s, %(output)s, %(cache_read)s, %(cache_write)s, %(cache_write_1h)s,
        coalesce(to_timestamp(%(valid_from)s), clock_timestamp()), to_timestamp(%(valid_to)s))
ON CONFLICT (model, provider, valid_from) DO NOTHING
RETURNING id;

-- name: edit_price
-- Zero rows: the version moved on.
UPDATE price SET input_nano = %(input)s, output_nano = %(output)s, cache_read_nano = %(cache_read)s,
                 cache_write_nano = %(cache_write)s, cache_write_1h_nano = %(cache_write_1h)s,
                 valid_from = to_timestamp(%(valid_from)s), valid_to = to_timestamp(%(valid_to)s), version = version + 1
WHERE id = %(price)s AND version = %(version)s
RETURNING version;
