-- name: add_webhook
INSERT INTO webhook (tenant_id, url, events, salt, cursor)
VALUES (%(tenant)s, %(url)s, %(events)s::text[], %(salt)s,
        coalesce((SELECT last_seq FROM event_mark WHERE id = 1), 0))
RETURNING id;

-- name: count_webhooks
SELECT count(*) FROM webhook WHERE tenant_id IS NOT DISTINCT FROM %(tenant)s::bigint;

-- name: read_webhooks
-- Of one tenant, or all there are for NULL; beyond an id.
SELECT w.id, w.tenant_id, tenant.slug, w.url, w.events, w.salt, w.standing, w.cursor, w.sending_to, w.failures,
       extract(epoch FROM w.failing_since)::float8, extract(epoch FROM w.due_at)::float8, w.version,
       extract(epoch FROM w.test_at)::float8, extract(epoch FROM w.test_due_at)::float8,
       extract(epoch FROM clock_timestamp())::float8
FROM webhook w LEFT JOIN tenant ON tenant.id = w.tenant_id
WHERE (%(tenant)s::bigint IS NULL OR w.tenant_id = %(tenant)s) AND w.id > %(after)s
ORDER BY w.id LIMIT %(rows_max)s;

-- name: lock_webhook
SELECT w.id, w.tenant_id, tenant.slug, w.url, w.events, w.salt, w.standing, w.cursor, w.sending_to, w.failures,
       extract(epoch FROM w.failing_since)::float8, extract(epoch FROM w.due_at)::float8, w.version,
       extract(epoch FROM w.test_at)::float8, extract(epoch FROM w.test_due_at)::float8,
       extract(epoch FROM clock_timestamp())::float8
FROM webhook w LEFT JOIN tenant ON tenant.id = w.tenant_id
WHERE w.id = %(webhook)s AND (%(tenant)s::bigint IS NULL OR w.tenant_id = %(tenant)s)
FOR NO KEY UPDATE OF w;

-- name: edit_webhook
-- What was posted and not confirmed is not posted as it was any more: it may hold what is not wanted now.
UPDATE webhook
SET url = %(url)s, events = %(events)s::text[], standing = %(standing)s, sending_to = NULL, failures = 0,
    failing_since = NULL, due_at = clock_timestamp(), version = version + 1
WHERE id = %(webhook)s AND version = %(version)s;

-- name: replace_salt
UPDATE webhook SET salt = %(salt)s, version = version + 1 WHERE id = %(webhook)s;

-- name: rewind_webhook
UPDATE webhook SET cursor = %(after)s, sending_to = NULL, due_at = clock_timestamp(), version = version + 1
WHERE id = %(webhook)s;

-- name: remove_webhook
DELETE FROM webhook WHERE id = %(webhook)s;

-- name: due_webhooks
-- Those to be tested, and those with something to deliver, the longest due first; one may be there twice. Who wants
-- alerts alone is not asked for transitions.
(SELECT id FROM webhook WHERE test_due_at <= clock_timestamp() ORDER BY test_due_at, id LIMIT %(rows_max)s)
UNION ALL
(SELECT w.id FROM webhook w
WHERE w.standing = 'active' AND w.due_at <= clock_timestamp()
  AND CASE
        WHEN NOT EXISTS (SELECT FROM unnest(w.events) name WHERE name LIKE 'task.%%')
        THEN EXISTS (SELECT FROM event e WHERE e.type LIKE 'alert.%%' AND e.seq > w.cursor
                                           AND (w.tenant_id IS NULL OR e.tenant_id = w.tenant_id))
        WHEN w.tenant_id IS NULL THEN EXISTS (SELECT FROM event e WHERE e.seq > w.cursor)
        ELSE EXISTS (SELECT FROM event e WHERE e.tenant_id = w.tenant_id AND e.seq > w.cursor)
      END
ORDER BY w.due_at, w.id LIMIT %(rows_max)s);

-- name: ask_test
-- While one is on its way there is no other.
UPDATE webhook SET test_at = clock_timestamp(), test_due_at = clock_timestamp()
WHERE id = %(webhook)s AND test_at IS NULL;

-- name: claim_test
UPDATE webhook SET test_due_at = clock_timestamp() + make_interval(secs => %(seconds)s) WHERE id = %(webhook)s;

-- name: end_test
-- Zero rows: it was ended before, or another has been asked for since.
UPDATE webhook SET test_at = NULL, test_due_at = NULL
WHERE id = %(webhook)s AND test_at = to_timestamp(%(test_at)s::float8);

-- name: claim_webhook
-- Nobody else posts for it until `seconds` have passed, unless it is confirmed before.
UPDATE webhook SET sending_to = %(sending_to)s, due_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = %(webhook)s;

-- name: pass_over
-- Nothing up to there was asked for.
UPDATE webhook SET cursor = %(cursor)s WHERE id = %(webhook)s;

-- name: confirm_delivery
-- Zero rows: it was edited, rewound or confirmed meanwhile.
UPDATE webhook
SET cursor = %(sending_to)s, sending_to = NULL, failures = 0, failing_since = NULL, due_at = clock_timestamp()
WHERE id = %(webhook)s AND cursor = %(cursor)s AND sending_to = %(sending_to)s;

-- name: fail_delivery
UPDATE webhook
SET failures = failures + 1, failing_since = coalesce(failing_since, clock_timestamp()), standing = %(standing)s,
    due_at = clock_timestamp() + make_interval(secs => %(after_s)s)
WHERE id = %(webhook)s AND cursor = %(cursor)s AND sending_to = %(sending_to)s AND standing = 'active';

-- name: add_delivery
INSERT INTO webhook_delivery (webhook_id, at, first_seq, last_seq, events, status, took_s, error)
SELECT id, clock_timestamp(), %(first)s, %(last)s, %(events)s, %(status)s, %(took_s)s, %(error)s
FROM webhook WHERE id = %(webhook)s;

-- name: read_deliveries
SELECT id, extract(epoch FROM at)::float8, first_seq, last_seq, events, status, took_s, error FROM webhook_delivery
WHERE webhook_id = %(webhook)s AND id < %(before)s
ORDER BY id DESC LIMIT %(rows_max)s;

-- name: forget_deliveries
DELETE FROM webhook_delivery WHERE id IN (
    SELECT id FROM webhook_delivery WHERE at < clock_timestamp() - make_interval(secs => %(keep_s)s)
    ORDER BY at LIMIT %(rows_max)s
);
