-- name: list_workers
-- Workers after a name and an id, with what they run and whether they plan.
SELECT w.id::text, w.name, w.kind, n.slug, w.labels, w.slots::text, w.draining, extract(epoch FROM w.started_at)::float8,
       extract(epoch FROM w.seen_at)::float8, w.seen_at < clock_timestamp() - make_interval(secs => %(fresh_s)s),
       coalesce(b.leases, 0), coalesce(l.name IS NOT NULL, false)
FROM worker w
LEFT JOIN tenant n ON n.id = w.tenant_id
LEFT JOIN (SELECT worker_id, count(*) AS leases FROM lease GROUP BY 1) b ON b.worker_id = w.id
LEFT JOIN leader l ON l.name = 'planner' AND l.holder = w.id AND l.expires_at > clock_timestamp()
WHERE (w.name, w.id) > (%(after_name)s::text, %(after_id)s::uuid)
  AND (%(kind)s::text IS NULL OR w.kind = %(kind)s::text)
  AND (%(pool)s::text IS NULL OR w.slots ? %(pool)s::text OR w.declared ? %(pool)s::text)
ORDER BY w.name, w.id
LIMIT %(rows_max)s;

-- name: one_worker
SELECT w.id::text, w.name, w.kind, n.slug, w.labels, w.slots::text, w.draining, extract(epoch FROM w.started_at)::float8,
       extract(epoch FROM w.seen_at)::float8, w.seen_at < clock_timestamp() - make_interval(secs => %(fresh_s)s),
       (SELECT count(*) FROM lease b WHERE b.worker_id = w.id), coalesce(l.name IS NOT NULL, false)
FROM worker w
LEFT JOIN tenant n ON n.id = w.tenant_id
LEFT JOIN leader l ON l.name = 'planner' AND l.holder = w.id AND l.expires_at > clock_timestamp()
WHERE w.id = %(worker)s::uuid;

-- name: held_by_worker
-- What a worker runs, oldest first.
SELECT l.task_id, q.name, n.slug, l.attempt, extract(epoch FROM l.started_at)::float8, l.cancel_requested_at IS NOT NULL
FROM lease l JOIN pool q ON q.id = l.pool_id JOIN tenant n ON n.id = l.tenant_id
WHERE l.worker_id = %(worker)s::uuid
ORDER BY l.started_at, l.lease_id
LIMIT %(rows_max)s;

-- name: worker_figures
-- How all workers stand: by kind, those that drain, those that were not heard of lately; slots, and what runs in them.
SELECT count(*) FILTER (WHERE w.kind = 'engine'), count(*) FILTER (WHERE w.kind = 'remote'),
       count(*) FILTER (WHERE w.draining),
       count(*) FILTER (WHERE w.seen_at < clock_timestamp() - make_interval(secs => %(fresh_s)s)),
       coalesce(sum((SELECT sum(s.n::bigint) FROM jsonb_each_text(w.slots) AS s(pool, n))), 0)::bigint,
       (SELECT count(*) FROM lease), extract(epoch FROM clock_timestamp())::float8
FROM worker w;

-- name: worker_versions
-- Workers by the version that they say they are, as a label.
SELECT substr(v.label, length('version=') + 1), count(*)
FROM worker w CROSS JOIN LATERAL unnest(w.labels) AS v(label)
WHERE v.label LIKE 'version=%%'
GROUP BY 1
ORDER BY 2 DESC, 1
LIMIT %(rows_max)s;
