-- name: spent_budgets
-- Months in force of which a part that is told of is spent, most spent first. Looks among the newest alerts alone, so that
-- it costs the same however many tenants there are.
SELECT DISTINCT ON (b.spent_nano::float8 / greatest(b.allowed_nano, 1), b.id)
       t.slug, b.spent_nano, b.allowed_nano, extract(epoch FROM b.period_end)::float8
FROM (SELECT budget_id, tenant_id, threshold FROM alert WHERE scope = 'tenant' ORDER BY id DESC LIMIT %(alerts_max)s) a
JOIN budget_in_force b ON b.id = a.budget_id
JOIN tenant t ON t.id = a.tenant_id
WHERE b.period_end > clock_timestamp() AND b.spent_nano >= a.threshold * b.allowed_nano
ORDER BY b.spent_nano::float8 / greatest(b.allowed_nano, 1) DESC, b.id
LIMIT %(rows_max)s;

-- name: recent_deaths
-- Groups of dead letters that grew lately, the most numerous first of the newest.
SELECT p.name, t.slug, g.n, g.failure_class, g.shape, extract(epoch FROM g.last_at)::float8
FROM (SELECT * FROM dead_group WHERE n > 0 AND last_at > statement_timestamp() - make_interval(secs => %(within_s)s)
      ORDER BY last_at DESC, fingerprint DESC LIMIT %(rows_max)s) g
JOIN pool p ON p.id = g.pool_id
JOIN tenant t ON t.id = g.tenant_id
ORDER BY g.n DESC, g.fingerprint;

-- name: tally
-- Runs that run, dead letters and operations at work, each counted up to a bound along an index.
SELECT (SELECT count(*) FROM (SELECT FROM run WHERE state = 'active' LIMIT %(most)s) r),
       (SELECT count(*) FROM (SELECT FROM dead_letter WHERE discarded_at IS NULL LIMIT %(most)s) d),
       (SELECT count(*) FROM (SELECT FROM operation WHERE state IN ('starting', 'running') LIMIT %(most)s) o);
