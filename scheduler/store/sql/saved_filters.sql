-- name: list_saved
-- The filters that a person keeps, and those that all share.
SELECT id, owner_id IS NULL, name, filter, created_by FROM saved_filter
WHERE owner_id IS NULL OR owner_id = %(person)s
ORDER BY owner_id IS NULL, name, id
LIMIT %(rows_max)s;

-- name: count_saved
SELECT count(*) FROM saved_filter WHERE owner_id IS NOT DISTINCT FROM %(owner)s::integer;

-- name: drop_named
-- What had the name before makes room.
DELETE FROM saved_filter WHERE owner_id IS NOT DISTINCT FROM %(owner)s::integer AND name = %(name)s RETURNING filter;

-- name: add_saved
-- No row: somebody else took the name meanwhile.
INSERT INTO saved_filter (owner_id, name, filter, created_by, created_at)
VALUES (%(owner)s, %(name)s, %(filter)s, %(by)s, clock_timestamp())
ON CONFLICT DO NOTHING
RETURNING id;

-- name: drop_saved
-- Of a person, or shared where that is allowed.
DELETE FROM saved_filter
WHERE id = %(id)s AND (owner_id = %(person)s OR (owner_id IS NULL AND %(shared)s))
RETURNING id, owner_id IS NULL, name, filter, created_by;
