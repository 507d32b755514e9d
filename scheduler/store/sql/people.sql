-- name: read_binding
-- The tenant that an account is bound to; no row: it is bound to none.
SELECT tenant.slug FROM bound_account b JOIN tenant ON tenant.id = b.tenant_id WHERE b.user_id = %(user)s;

-- name: read_bindings
-- The same of many accounts.
SELECT b.user_id, tenant.slug FROM bound_account b JOIN tenant ON tenant.id = b.tenant_id
WHERE b.user_id = ANY(%(users)s::bigint[]);

-- name: bind_account
INSERT INTO bound_account (user_id, tenant_id) VALUES (%(user)s, %(tenant)s)
ON CONFLICT (user_id) DO UPDATE SET tenant_id = EXCLUDED.tenant_id;

-- name: unbind_account
DELETE FROM bound_account WHERE user_id = %(user)s;
