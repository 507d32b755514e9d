-- name: add_audit_event
INSERT INTO audit_event (actor, source, action, subject, reason, before, after, address, request_id)
VALUES (%(actor)s, %(source)s, %(action)s, %(subject)s, %(reason)s, %(before)s::jsonb, %(after)s::jsonb,
        %(address)s::inet, %(request_id)s);

-- name: older_audit_events
-- Beyond an event on the way back in time; from the newest on for NULL, and for an event that was pruned meanwhile.
-- Planned anew for its values: a filter that is left out must not cost the index of one that is not.
SELECT a.id, extract(epoch FROM a.at)::float8, a.actor, a.source, a.action, a.subject, a.reason, a.before::text,
       a.after::text, host(a.address), a.request_id
FROM audit_event a
WHERE (a.at, a.id) < (coalesce((SELECT at FROM audit_event WHERE id = %(cursor)s::bigint), 'infinity'),
                      coalesce(%(cursor)s::bigint, 9223372036854775807))
  AND (%(since)s::float8 IS NULL OR a.at >= to_timestamp(%(since)s))
  AND (%(until)s::float8 IS NULL OR a.at < to_timestamp(%(until)s))
  AND (%(actor)s::text IS NULL OR a.actor = %(actor)s)
  AND (%(action)s::text IS NULL OR a.action = %(action)s)
  AND (%(subject)s::text IS NULL OR a.subject = %(subject)s)
  AND (%(source)s::text IS NULL OR a.source = %(source)s)
ORDER BY a.at DESC, a.id DESC LIMIT %(rows_max)s;

-- name: newer_audit_events
-- The same towards now, the oldest of them first.
SELECT a.id, extract(epoch FROM a.at)::float8, a.actor, a.source, a.action, a.subject, a.reason, a.before::text,
       a.after::text, host(a.address), a.request_id
FROM audit_event a
WHERE (a.at, a.id) > (coalesce((SELECT at FROM audit_event WHERE id = %(cursor)s::bigint), '-infinity'),
                      coalesce(%(cursor)s::bigint, 0))
  AND (%(since)s::float8 IS NULL OR a.at >= to_timestamp(%(since)s))
  AND (%(until)s::float8 IS NULL OR a.at < to_timestamp(%(until)s))
  AND (%(actor)s::text IS NULL OR a.actor = %(actor)s)
  AND (%(action)s::text IS NULL OR a.action = %(action)s)
  AND (%(subject)s::text IS NULL OR a.subject = %(subject)s)
  AND (%(source)s::text IS NULL OR a.source = %(source)s)
ORDER BY a.at, a.id LIMIT %(rows_max)s;

-- name: find_audit_event
SELECT a.id, extract(epoch FROM a.at)::float8, a.actor, a.source, a.action, a.subject, a.reason, a.before::text,
       a.after::text, host(a.address), a.request_id
FROM audit_event a WHERE a.id = %(event)s;
