-- name: add_top_up
-- Zero rows: it would end before it begins. It ends with the budget's period at the latest.
INSERT INTO top_up (budget_id, tenant_id, amount_nano, starts_at, ends_at, actor, reason)
SELECT b.id, b.scope_id, %(amount)s, moment.now,
       least(coalesce(to_timestamp(%(until)s), moment.now + make_interval(secs => %(for_s)s)), b.period_end),
       %(actor)s, %(reason)s
FROM budget b CROSS JOIN (SELECT clock_timestamp() AS now) moment
WHERE b.id = %(budget)s AND b.period_end > moment.now
  AND coalesce(to_timestamp(%(until)s), moment.now + make_interval(secs => %(for_s)s)) > moment.now
RETURNING id, amount_nano, extract(epoch FROM starts_at)::float8, extract(epoch FROM ends_at)::float8,
          extract(epoch FROM ended_at)::float8, actor, reason, true;

-- name: end_top_up
-- Zero rows: it is not in force any more, or not of this tenant.
UPDATE top_up SET ended_at = clock_timestamp()
WHERE id = %(top_up)s AND tenant_id = %(tenant)s AND ended_at IS NULL AND ends_at > clock_timestamp()
RETURNING budget_id;

-- name: keep_top_ups
-- What is in force of a budget, which is locked, beside its limit. Those that end by themselves stay until then.
UPDATE budget b SET top_up_nanos = u.nanos, top_up_untils = u.untils
FROM (SELECT array_agg(amount_nano ORDER BY ends_at, id) AS nanos, array_agg(ends_at ORDER BY ends_at, id) AS untils
      FROM top_up WHERE budget_id = %(budget)s AND ended_at IS NULL AND ends_at > clock_timestamp()) u
WHERE b.id = %(budget)s
RETURNING coalesce(cardinality(u.nanos), 0), coalesce((SELECT sum(n) FROM unnest(u.nanos) AS n), 0)::bigint;

-- name: read_top_ups
SELECT id, amount_nano, extract(epoch FROM starts_at)::float8, extract(epoch FROM ends_at)::float8,
       extract(epoch FROM ended_at)::float8, actor, reason, ended_at IS NULL AND ends_at > clock_timestamp()
FROM top_up
WHERE tenant_id = %(tenant)s AND (%(before)s::bigint IS NULL OR id < %(before)s)
  AND (%(top_up)s::bigint IS NULL OR id = %(top_up)s)
ORDER BY id DESC LIMIT %(rows_max)s;
