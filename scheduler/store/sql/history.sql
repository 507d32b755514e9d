-- name: sample_history
-- The newest picture as one sample of each pool and limit; so many of each at most, whatever there is. A picture that
-- was sampled before adds nothing.
WITH picture AS (SELECT as_of, body FROM snapshot ORDER BY seq DESC LIMIT 1)
INSERT INTO history_sample (kind, name, at, waiting, used, oldest_s)
(SELECT 'pool', p->>'name', s.as_of,
        (SELECT coalesce(sum(w.value::bigint), 0) FROM jsonb_each_text(p->'waiting') w),
        (p->>'running')::float8 / greatest((p->>'slots')::float8, 1), (p->>'oldest_waiting_s')::float8
 FROM picture s, jsonb_array_elements(s.body->'pools') p LIMIT %(subjects_max)s)
UNION ALL
(SELECT 'limit', r->>'name', s.as_of, (r->>'waiting')::bigint, (r->>'used_fraction')::float8, NULL::float8
 FROM picture s, jsonb_array_elements(s.body->'resources') r LIMIT %(subjects_max)s)
ON CONFLICT DO NOTHING;

-- name: forget_history
DELETE FROM history_sample WHERE at < clock_timestamp() - make_interval(secs => %(keep_s)s);

-- name: read_history
SELECT extract(epoch FROM at)::float8, waiting, used, oldest_s FROM history_sample
WHERE kind = %(kind)s AND name = %(name)s AND at >= to_timestamp(%(since)s::float8)
ORDER BY at LIMIT %(rows_max)s;
