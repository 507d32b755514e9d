-- name: note_use
-- At most every ten minutes, however often the token is used.
UPDATE api_token SET last_used_at = clock_timestamp()
WHERE public_id = %(public_id)s
  AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - make_interval(secs => %(every_s)s));

-- name: list_tokens
-- The newest first, the useless ones too.
SELECT k.id, k.public_id, k.name, tenant.slug, k.scopes, k.pools, extract(epoch FROM k.created_at)::float8,
       extract(epoch FROM k.expires_at)::float8, extract(epoch FROM k.revoked_at)::float8,
       extract(epoch FROM k.last_used_at)::float8, extract(epoch FROM clock_timestamp())::float8
FROM api_token k LEFT JOIN tenant ON tenant.id = k.tenant_id
WHERE %(before)s::bigint IS NULL OR k.id < %(before)s
ORDER BY k.id DESC LIMIT %(rows_max)s;
