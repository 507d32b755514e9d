-- name: read_binding
-- The tenant that an account is bound to; no row: it is bound to none.
SELECT tenant.slug FROM bound_account b JOIN tenant ON tenant.id = b.tenant_id WHERE b.user_id = %(user)s;

-- name: read_rights
-- What an account may by itself and by its groups, and the tenant that it is bound to.
SELECT ARRAY(SELECT c.app_label || '.' || p.codename
             FROM auth_permission p JOIN django_content_type c ON c.id = p.content_type_id
             WHERE p.id IN (SELECT u.permission_id FROM auth_user_user_permissions u WHERE u.user_id = %(user)s
                            UNION ALL
                            SELECT gp.permission_id FROM auth_group_permissions gp
                            JOIN auth_user_groups g ON g.group_id = gp.group_id WHERE g.user_id = %(user)s)),
       (SELECT tenant.slug FROM bound_account b JOIN tenant ON tenant.id = b.tenant_id WHERE b.user_id = %(user)s);

-- name: read_bindings
-- The same of many accounts.
SELECT b.user_id, tenant.slug FROM bound_account b JOIN tenant ON tenant.id = b.tenant_id
WHERE b.user_id = ANY(%(users)s::bigint[]);

-- name: bind_account
INSERT INTO bound_account (user_id, tenant_id) VALUES (%(user)s, %(tenant)s)
ON CONFLICT (user_id) DO UPDATE SET tenant_id = EXCLUDED.tenant_id;

-- name: unbind_account
DELETE FROM bound_account WHERE user_id = %(user)s;
