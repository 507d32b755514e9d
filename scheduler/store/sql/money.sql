-- name: read_billing
-- How these tasks were priced, and what their pools' workers cost.
SELECT t.id, t.kind, t.pool_id, t.tenant_id, p.pricing::text, q.worker_second_nano
FROM task t JOIN task_payload p ON p.task_id = t.id JOIN pool q ON q.id = t.pool_id
WHERE t.id = ANY(%(tasks)s::bigint[]);

-- name: lock_budgets
-- Budgets that are about to be charged, in the order in which dispatch locks them.
SELECT b.id, b.scope, b.scope_id, b.allowed_nano, b.spent_nano, b.reserved_nano,
       extract(epoch FROM b.period_end)::float8
FROM budget_in_force b
WHERE b.id = ANY(%(budgets)s::bigint[])
ORDER BY b.id
FOR NO KEY UPDATE;

-- name: book_charges
-- Replace reservations by charges, and append to the ledger what was charged. A line that is there stays as it is.
WITH charged AS (
    UPDATE budget b SET spent_nano = b.spent_nano + n.spent, reserved_nano = b.reserved_nano - n.freed
    FROM unnest(%(budgets)s::bigint[], %(spent)s::bigint[], %(freed)s::bigint[]) AS n(id, spent, freed)
    WHERE b.id = n.id
)
INSERT INTO ledger_entry (lease_id, line, at, tenant_id, pool_id, task_id, run_id, budget_ids, kind, model,
                          provider_cost_nano, tenant_charge_nano, usage, usage_source, price_source, outcome)
SELECT n.lease_id, n.line, clock_timestamp(), n.tenant_id, n.pool_id, n.task_id, n.run_id, n.budget_ids::bigint[], n.kind,
       n.model, n.cost, n.charge, n.usage, n.usage_source, n.price_source, n.outcome
FROM unnest(%(leases)s::bigint[], %(lines)s::smallint[], %(tenants)s::bigint[], %(pools)s::bigint[],
            %(tasks)s::bigint[], %(runs)s::bigint[], %(held)s::text[], %(kinds)s::text[], %(models)s::text[],
            %(costs)s::bigint[], %(charges)s::bigint[], %(usages)s::jsonb[], %(usage_sources)s::text[],
            %(price_sources)s::text[], %(outcomes)s::text[])
     AS n(lease_id, line, tenant_id, pool_id, task_id, run_id, budget_ids, kind, model, cost, charge, usage,
          usage_source, price_source, outcome)
ON CONFLICT (lease_id, line) DO NOTHING;

-- name: read_prices_of
-- Operators' prices of these models, whenever they are valid.
SELECT model, provider, input_nano, output_nano, cache_read_nano, cache_write_nano, cache_write_1h_nano,
       extract(epoch FROM valid_from)::float8, extract(epoch FROM valid_to)::float8
FROM price
WHERE model = ANY(%(models)s::text[]);

