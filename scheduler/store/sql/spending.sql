-- name: mark_burn
-- Let marks follow what was spent: budgets in force that have spent and have no mark, and those whose mark is of some
-- minutes ago. Where nothing was spent since, nothing is written.
WITH gone AS (
    DELETE FROM burn_mark m USING budget b WHERE b.id = m.budget_id AND b.period_end < statement_timestamp()
)
INSERT INTO burn_mark AS m (budget_id, old_nano, old_at, mid_nano, mid_at)
SELECT b.id, b.spent_nano, statement_timestamp(), b.spent_nano, statement_timestamp()
FROM budget b LEFT JOIN burn_mark m ON m.budget_id = b.id
WHERE b.scope = 'tenant' AND b.period_end > statement_timestamp()
  AND CASE WHEN m.budget_id IS NULL THEN b.spent_nano > 0
           ELSE m.mid_at <= statement_timestamp() - interval '5 minutes'
                AND (b.spent_nano <> m.mid_nano OR m.mid_nano <> m.old_nano) END
ON CONFLICT (budget_id) DO UPDATE
SET old_nano = m.mid_nano, old_at = m.mid_at, mid_nano = excluded.mid_nano, mid_at = excluded.mid_at;

-- name: list_spenders
-- A page of tenants with the budgets of their present periods, in the order of a key; NULLs where no period has begun.
WITH stood AS (
    SELECT t.id, t.slug, t.name, t.status, t.weight, t.time_zone, t.alert_at, t.monthly_budget_nano AS monthly_nano,
           b.id AS budget_id, CASE WHEN b.id IS NULL THEN t.monthly_budget_nano ELSE b.allowed_nano END AS limit_nano,
           coalesce(b.spent_nano, 0) AS spent_nano, coalesce(b.reserved_nano, 0) AS reserved_nano, b.period_start,
           b.period_end,
           CASE WHEN coalesce(b.spent_nano, 0) = 0 THEN 0
                ELSE burn_nano_per_hour(b.spent_nano, m.old_nano, m.old_at, statement_timestamp()) END AS burn
    FROM tenant t
    LEFT JOIN LATERAL (
        SELECT * FROM budget_in_force b
        WHERE b.scope = 'tenant' AND b.scope_id = t.id AND b.period_end > statement_timestamp()
        ORDER BY b.period_start DESC LIMIT 1
    ) b ON true
    LEFT JOIN burn_mark m ON m.budget_id = b.id
    WHERE strpos(lower(t.slug), %(name)s) > 0 OR strpos(lower(t.name), %(name)s) > 0
),
keyed AS (
    SELECT s.*, CASE %(sort)s::text
        -- The part of its limit that a budget will have used at the end of its period, at the present burn.
        WHEN 'risk' THEN CASE WHEN s.limit_nano > 0 THEN
            (s.spent_nano + s.reserved_nano
             + coalesce(s.burn, 0) * greatest(0, extract(epoch FROM s.period_end - statement_timestamp())::float8) / 3600)
            / s.limit_nano
            WHEN s.limit_nano = 0 THEN 1 ELSE -1 END
        WHEN 'burn' THEN coalesce(s.burn, 0)
        WHEN 'spent' THEN s.spent_nano
        ELSE 0 END::float8 AS key
    FROM stood s
),
found AS (
    SELECT * FROM keyed k
    WHERE %(key)s::float8 IS NULL
       OR CASE WHEN %(back)s THEN k.key > %(key)s OR (k.key = %(key)s AND k.slug < %(slug)s)
               ELSE k.key < %(key)s OR (k.key = %(key)s AND k.slug > %(slug)s) END
    ORDER BY CASE WHEN %(back)s THEN k.key END, CASE WHEN %(back)s THEN k.slug END DESC, k.key DESC, k.slug
    LIMIT %(rows_max)s
),
busy AS (SELECT tenant_id, count(*) AS n FROM lease GROUP BY 1),
deep AS (
    SELECT tenant_id, sum(n)::bigint AS n
    FROM (SELECT scope_id AS tenant_id, waiting AS n FROM waiting_depth WHERE scope = 'tenant' AND waiting <> 0
          UNION ALL
          SELECT tenant_id, n FROM task_change WHERE counter IN ('blocked', 'scheduled', 'ready', 'retrying')) AS parts
    GROUP BY 1 HAVING sum(n) > 0
),
-- Whose weights are weighed against each other now: those who have work.
weighed AS (
    SELECT sum(t.weight) AS total FROM tenant t
    WHERE t.status = 'active' AND t.id IN (SELECT tenant_id FROM busy UNION SELECT tenant_id FROM deep)
)
SELECT f.key, f.slug, f.name, f.status, f.weight, f.time_zone, f.alert_at, f.limit_nano, f.spent_nano, f.reserved_nano,
       f.burn, extract(epoch FROM f.period_start)::float8, extract(epoch FROM f.period_end)::float8,
       CASE WHEN f.budget_id IS NULL THEN
           (SELECT extract(epoch FROM max(o.period_end))::float8 FROM budget o
            WHERE o.scope = 'tenant' AND o.scope_id = f.id) END,
       coalesce(busy.n, 0), coalesce(deep.n, 0),
       CASE WHEN f.status = 'active' AND (busy.n > 0 OR deep.n > 0) THEN f.weight / nullif(w.total, 0) END,
       extract(epoch FROM statement_timestamp())::float8
FROM found f CROSS JOIN weighed w
LEFT JOIN busy ON busy.tenant_id = f.id
LEFT JOIN deep ON deep.tenant_id = f.id
ORDER BY f.key DESC, f.slug;

-- name: read_tenant_story
-- What came up lately about a tenant: alerts of its budgets, and its last runs.
SELECT (SELECT json_agg(json_build_array(a.scope, a.scope_id, a.threshold, a.limit_nano, a.spent_nano,
                                         extract(epoch FROM a.at)::float8) ORDER BY a.id DESC)
        FROM (SELECT * FROM alert WHERE tenant_id = %(tenant)s ORDER BY id DESC LIMIT %(rows_max)s) a)::text,
       (SELECT json_agg(json_build_array(r.id, r.name, r.state, extract(epoch FROM r.created_at)::float8,
                                         b.spent_nano) ORDER BY r.id DESC)
        FROM (SELECT * FROM run WHERE tenant_id = %(tenant)s ORDER BY id DESC LIMIT %(rows_max)s) r
        LEFT JOIN budget b ON b.scope = 'run' AND b.scope_id = r.id)::text;

-- name: read_spending
-- What was spent from a moment on: all of it, by the days of a zone, and by everything that cost is known by, in one
-- reading. Whole days that are summed up come from the sums; the ledger has the rest: what is not summed up yet, and the
-- first day if it is no whole one. `summed` is where the sums ended a moment ago: a plan that knows it reads the end of
-- the ledger alone. Of each kind of part the dearest come first, and only so many; days come whole.
WITH since AS (
    SELECT to_timestamp(%(starts)s) AS at, coalesce((SELECT summed_id FROM spending_mark WHERE id = 1), 0) AS summed,
           (to_timestamp(%(starts)s) AT TIME ZONE %(zone)s)::date AS first_day,
           (to_timestamp(%(starts)s) AT TIME ZONE %(zone)s)::date
           = ((to_timestamp(%(starts)s) - interval '1 microsecond') AT TIME ZONE %(zone)s)::date AS is_torn
),
unsummed AS (
    SELECT e.* FROM ledger_entry e, since s
    WHERE e.id > %(summed)s AND e.id > s.summed AND e.at >= s.at
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
    UNION ALL
    SELECT e.* FROM ledger_entry e, since s
    WHERE s.is_torn AND e.id <= s.summed AND e.at >= s.at AND e.at < ((s.first_day + 1)::timestamp AT TIME ZONE %(zone)s)
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
),
entry AS (
    SELECT (e.at AT TIME ZONE %(zone)s)::date AS day, e.tenant_id::text AS tenant, e.pool_id::text AS pool, e.kind,
           coalesce(e.model, '') AS model, coalesce(e.priority, -1)::text AS class,
           e.provider_cost_nano AS cost, e.tenant_charge_nano AS charge,
           CASE WHEN e.outcome = 'waste' THEN e.provider_cost_nano ELSE 0 END AS waste,
           CASE WHEN e.outcome = 'success' AND (e.line = 0 OR NOT EXISTS (
               SELECT FROM ledger_entry o WHERE o.lease_id = e.lease_id AND o.line < e.line)) THEN 1 ELSE 0 END AS success
    FROM unsummed e
),
part AS (
    SELECT CASE grouping(day, tenant, pool, kind, model, class)
               WHEN 31 THEN 'day' WHEN 47 THEN 'tenant' WHEN 55 THEN 'pool' WHEN 59 THEN 'kind' WHEN 61 THEN 'model'
               ELSE 'class' END AS by,
           coalesce(day::text, tenant, pool, kind, model, class) AS what, sum(cost) AS cost, sum(charge) AS charge,
           sum(waste) AS waste, sum(success) AS successes
    FROM entry GROUP BY GROUPING SETS ((day), (tenant), (pool), (kind), (model), (class))
    UNION ALL
    SELECT CASE WHEN grouping(d.day) = 0 THEN 'day' ELSE d.by END, coalesce(d.day::text, d.what), sum(d.cost_nano),
           sum(d.charge_nano), sum(d.waste_nano), sum(d.successes)
    FROM spending_day d, since s
    WHERE d.scope_id = coalesce(%(tenant)s::bigint, 0)
      AND d.day >= CASE WHEN s.is_torn THEN s.first_day + 1 ELSE s.first_day END
    -- Each way of telling cost apart has all of it; a day is the sum of one of them.
    GROUP BY GROUPING SETS ((d.by, d.what), (d.by, d.day)) HAVING grouping(d.day) = 1 OR d.by = 'class'
),
whole AS (
    SELECT by, what, sum(cost)::bigint AS cost, sum(charge)::bigint AS charge, sum(waste)::bigint AS waste,
           sum(successes)::bigint AS successes
    FROM part GROUP BY by, what
),
ranked AS (SELECT w.*, row_number() OVER (PARTITION BY w.by ORDER BY w.cost DESC, w.successes DESC, w.what) AS place FROM whole w)
SELECT r.by, CASE r.by WHEN 'tenant' THEN (SELECT t.slug FROM tenant t WHERE t.id = r.what::bigint)
                       WHEN 'pool' THEN (SELECT p.name FROM pool p WHERE p.id = r.what::bigint) ELSE r.what END,
       r.cost, r.charge, r.waste, r.successes
FROM ranked r
WHERE (r.by = 'day' OR r.place <= %(parts_max)s) AND (r.by <> 'tenant' OR %(tenant)s::bigint IS NULL)
ORDER BY r.by, r.place;

-- name: read_cost
-- What was spent in [from, to), by one thing that cost is known by; the row with `total` is all of it. Whole days that are
-- summed up come from the sums, the ledger has the rest: the days that begin before or end after the time asked for, and
-- what is not summed up yet. An end that is NULL is now. `summed`: see above.
WITH asked AS (
    SELECT to_timestamp(%(starts)s) AS starts, coalesce(to_timestamp(%(ends)s), 'infinity') AS ends,
           coalesce((SELECT summed_id FROM spending_mark WHERE id = 1), 0) AS summed,
           coalesce((SELECT t.time_zone FROM tenant t WHERE t.id = %(tenant)s::bigint), 'UTC') AS zone
),
days AS (
    SELECT a.*, ((a.starts - interval '1 microsecond') AT TIME ZONE a.zone)::date + 1 AS first_day,
           CASE WHEN a.ends > statement_timestamp() THEN 'infinity' ELSE (a.ends AT TIME ZONE a.zone)::date END AS end_day
    FROM asked a
),
entry AS (
    SELECT e.* FROM ledger_entry e, days d
    WHERE e.id > %(summed)s AND e.id > d.summed AND e.at >= d.starts AND e.at < d.ends
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
    UNION ALL
    SELECT e.* FROM ledger_entry e, days d
    WHERE e.id <= d.summed AND e.at >= d.starts AND e.at < least(d.ends, d.first_day::timestamp AT TIME ZONE d.zone)
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
    UNION ALL
    SELECT e.* FROM ledger_entry e, days d
    WHERE e.id <= d.summed AND e.at >= greatest(d.first_day, d.end_day)::timestamp AT TIME ZONE d.zone AND e.at < d.ends
      AND (%(tenant)s::bigint IS NULL OR e.tenant_id = %(tenant)s)
),
part AS (
    SELECT CASE %(by)s::text WHEN 'tenant' THEN e.tenant_id::text WHEN 'pool' THEN e.pool_id::text WHEN 'kind' THEN e.kind
                             ELSE coalesce(e.model, '') END AS what,
           e.provider_cost_nano AS cost, e.tenant_charge_nano AS charge,
           CASE WHEN e.outcome = 'waste' THEN e.provider_cost_nano ELSE 0 END AS waste,
           CASE WHEN e.outcome = 'success' AND (e.line = 0 OR NOT EXISTS (
               SELECT FROM ledger_entry o WHERE o.lease_id = e.lease_id AND o.line < e.line)) THEN 1 ELSE 0 END AS success
    FROM entry e
    UNION ALL
    -- All that a tenant spent is there by its pools, and not by tenant.
    SELECT CASE WHEN %(by)s = 'tenant' THEN coalesce(%(tenant)s::text, s.what) ELSE s.what END, s.cost_nano, s.charge_nano,
           s.waste_nano, s.successes
    FROM spending_day s, days d
    WHERE s.scope_id = coalesce(%(tenant)s::bigint, 0) AND s.day >= d.first_day AND s.day < d.end_day
      AND s.by = CASE WHEN %(by)s = 'tenant' AND %(tenant)s::bigint IS NOT NULL THEN 'pool' ELSE %(by)s END
),
whole AS (
    SELECT what, grouping(what) = 1 AS total, coalesce(sum(cost), 0)::bigint AS cost, coalesce(sum(charge), 0)::bigint AS charge,
           coalesce(sum(waste), 0)::bigint AS waste, coalesce(sum(success), 0)::bigint AS successes
    FROM part GROUP BY GROUPING SETS ((what), ()) ORDER BY 2 DESC, 3 DESC, 1 LIMIT %(rows_max)s
)
SELECT CASE WHEN %(by)s = 'tenant' THEN (SELECT t.slug FROM tenant t WHERE t.id = w.what::bigint) END,
       CASE WHEN %(by)s = 'pool' THEN (SELECT p.name FROM pool p WHERE p.id = w.what::bigint) END,
       CASE WHEN %(by)s = 'kind' THEN w.what END, CASE WHEN %(by)s = 'model' THEN nullif(w.what, '') END,
       w.total, w.cost, w.charge, w.waste, w.successes
FROM whole w ORDER BY w.total DESC, w.cost DESC, w.what;

-- name: read_top_burns
-- Who burns most now, with how their budgets stand, and what all burn together. Only budgets that have spent have marks.
SELECT t.slug, f.burn, f.spent_nano, f.reserved_nano, f.allowed_nano, t.alert_at, sum(f.burn) OVER ()
FROM (
    SELECT b.scope_id, b.spent_nano, b.reserved_nano, b.allowed_nano,
           burn_nano_per_hour(b.spent_nano, m.old_nano, m.old_at, statement_timestamp()) AS burn
    FROM burn_mark m JOIN budget_in_force b ON b.id = m.budget_id
    WHERE b.scope = 'tenant' AND b.period_end > statement_timestamp()
) f JOIN tenant t ON t.id = f.scope_id
WHERE f.burn > 0
ORDER BY f.burn DESC, t.slug LIMIT %(rows_max)s;
