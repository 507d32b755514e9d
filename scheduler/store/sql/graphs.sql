-- name: find_parents
-- Tasks of these tenants by key (false) or by id (true); a place missing from the result has none.
SELECT false, n.place, t.id, t.state
FROM unnest(%(tenants)s::bigint[], %(keys)s::text[]) WITH ORDINALITY AS n(tenant_id, key, place)
JOIN task t ON t.tenant_id = n.tenant_id AND t.key = n.key
UNION ALL
SELECT true, n.place, t.id, t.state
FROM unnest(%(id_tenants)s::bigint[], %(ids)s::bigint[]) WITH ORDINALITY AS n(tenant_id, id, place)
JOIN task t ON t.id = n.id AND t.tenant_id = n.tenant_id;

-- name: insert_edges
INSERT INTO task_edge (child_id, place, parent_id, key, condition, met, linked, await_until)
SELECT child_id, place, parent_id, key, condition, met, linked,
       clock_timestamp() + make_interval(secs => await_s)
FROM unnest(%(children)s::bigint[], %(places)s::smallint[], %(parents)s::bigint[], %(keys)s::text[],
            %(conditions)s::text[], %(mets)s::boolean[], %(linked)s::boolean[], %(awaits_s)s::float8[])
     AS n(child_id, place, parent_id, key, condition, met, linked, await_s);

-- name: lock_followers
-- Lock every blocked task that what has ended may move, in id order: two ends that meet in one graph take turns and
-- cannot wait for each other. `verdict` says what each end makes of the edges that lead away, `fate` what the end of a
-- task that is skipped in turn does. Decide in a later statement: it has to see what was committed while this one waited.
WITH RECURSIVE verdict AS MATERIALIZED (
    SELECT * FROM unnest(%(parents)s::bigint[], %(conditions)s::text[], %(mets)s::boolean[])
        AS v(parent_id, condition, met)
),
fate AS MATERIALIZED (
    SELECT * FROM unnest(%(fate_conditions)s::text[], %(fate_mets)s::boolean[]) AS f(condition, met)
),
met_directly AS MATERIALIZED (
    SELECT e.child_id, v.met
    FROM verdict v JOIN task_edge e ON e.parent_id = v.parent_id AND e.condition = v.condition AND e.met IS NULL
    UNION ALL
    SELECT d.child_id, d.met
    FROM unnest(%(edge_children)s::bigint[], %(edge_mets)s::boolean[]) AS d(child_id, met)
),
skipped(id) AS (
    SELECT d.child_id FROM met_directly d JOIN task c ON c.id = d.child_id AND c.state = 'blocked' WHERE NOT d.met
    UNION
    SELECT e.child_id
    FROM skipped s
    JOIN task_edge e ON e.parent_id = s.id AND e.met IS NULL
    JOIN fate f ON f.condition = e.condition AND NOT f.met
    JOIN task c ON c.id = e.child_id AND c.state = 'blocked'
),
reached AS (
    SELECT child_id AS id FROM met_directly
    UNION SELECT id FROM skipped
    UNION SELECT e.child_id FROM skipped s JOIN task_edge e ON e.parent_id = s.id AND e.met IS NULL
    UNION SELECT unnest(%(own)s::bigint[])
)
SELECT t.id FROM task t
WHERE t.id IN (SELECT id FROM reached) AND t.state = 'blocked'
ORDER BY t.id
FOR NO KEY UPDATE OF t;

-- name: decide_followers
-- Decide the edges that lead away from what has ended, skip the locked tasks that can never start, and let go those that
-- wait for nothing any more. A row without a state is a task that came after the locking: lock again and repeat; its
-- edges are untouched. Edges of tasks that have left `blocked` are decided too, so that none stays open for ever.
WITH RECURSIVE verdict AS MATERIALIZED (
    SELECT * FROM unnest(%(parents)s::bigint[], %(conditions)s::text[], %(mets)s::boolean[])
        AS v(parent_id, condition, met)
),
fate AS MATERIALIZED (
    SELECT * FROM unnest(%(fate_conditions)s::text[], %(fate_mets)s::boolean[]) AS f(condition, met)
),
locked AS MATERIALIZED (SELECT unnest(%(locked)s::bigint[]) AS id),
met_directly AS MATERIALIZED (
    SELECT e.child_id, e.place, v.met
    FROM verdict v JOIN task_edge e ON e.parent_id = v.parent_id AND e.condition = v.condition AND e.met IS NULL
    UNION
    SELECT e.child_id, e.place, d.met
    FROM unnest(%(edge_children)s::bigint[], %(edge_places)s::smallint[], %(edge_mets)s::boolean[])
         AS d(child_id, place, met)
    JOIN task_edge e ON e.child_id = d.child_id AND e.place = d.place AND e.met IS NULL
),
skipped(id) AS (
    SELECT d.child_id FROM met_directly d JOIN locked l ON l.id = d.child_id WHERE NOT d.met
    UNION
    SELECT e.child_id
    FROM skipped s
    JOIN task_edge e ON e.parent_id = s.id AND e.met IS NULL
    JOIN fate f ON f.condition = e.condition AND NOT f.met
    JOIN locked l ON l.id = e.child_id
),
reached AS MATERIALIZED (
    SELECT d.child_id, d.place, d.met, l.id IS NOT NULL AS is_locked, c.state = 'blocked' AS is_blocked
    FROM (
        SELECT child_id, place, met FROM met_directly
        UNION
        SELECT e.child_id, e.place, f.met
        FROM skipped s
        JOIN task_edge e ON e.parent_id = s.id AND e.met IS NULL
        JOIN fate f ON f.condition = e.condition
    ) d
    JOIN task c ON c.id = d.child_id
    LEFT JOIN locked l ON l.id = d.child_id
),
decided AS MATERIALIZED (SELECT child_id, place, met FROM reached WHERE is_locked OR NOT is_blocked),
marked AS (
    UPDATE task_edge e SET met = d.met FROM decided d
    WHERE e.child_id = d.child_id AND e.place = d.place AND e.met IS NULL
),
freed AS (
    SELECT d.child_id AS id
    FROM decided d JOIN locked l ON l.id = d.child_id
    WHERE d.child_id NOT IN (SELECT id FROM skipped)
    GROUP BY d.child_id
    HAVING count(*) = (SELECT count(*) FROM task_edge e WHERE e.child_id = d.child_id AND e.met IS NULL)
),
outcome AS (
    SELECT id, true AS is_skipped FROM skipped UNION ALL SELECT id, false FROM freed
),
moved AS (
    UPDATE task t
    SET state = CASE WHEN o.is_skipped THEN 'skipped' WHEN t.due_at > moment.now THEN 'scheduled' ELSE 'ready' END,
        ready_at = CASE WHEN NOT o.is_skipped AND (t.due_at > moment.now) IS NOT TRUE THEN moment.now END,
        due_at = CASE WHEN NOT o.is_skipped AND t.due_at > moment.now THEN t.due_at END,
        finished_at = CASE WHEN o.is_skipped THEN moment.now END
    FROM outcome o CROSS JOIN (SELECT clock_timestamp() AS now) moment
    WHERE t.id = o.id AND t.state = 'blocked'
    RETURNING t.id, t.state
)
SELECT id, state FROM moved
UNION ALL
SELECT DISTINCT child_id, NULL FROM reached WHERE is_blocked AND NOT is_locked;

-- name: read_unlinked
-- Edges whose parent is not known to carry the flag yet, with the parent as far as there is one, and whether the time to
-- wait for it has passed.
SELECT e.child_id, e.place, e.condition, coalesce(e.parent_id, p.id), e.parent_id IS NULL,
       coalesce(e.await_until < clock_timestamp(), false)
FROM task_edge e
JOIN task c ON c.id = e.child_id
LEFT JOIN task p ON e.parent_id IS NULL AND p.tenant_id = c.tenant_id AND p.key = e.key
WHERE NOT e.linked AND (%(children)s::bigint[] IS NULL OR e.child_id = ANY(%(children)s))
ORDER BY (e.parent_id IS NULL AND p.id IS NULL AND (e.await_until < clock_timestamp()) IS NOT TRUE), e.child_id, e.place
LIMIT %(edges_max)s;

-- name: flag_parents
-- From here on the end of these tasks looks for edges. One that is just being moved is left for the next time: waiting
-- for it could make two transactions wait for each other.
UPDATE task t SET links = t.links | %(flag)s
FROM (SELECT id FROM task WHERE id = ANY(%(parents)s::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) found
WHERE t.id = found.id
RETURNING t.id;

-- name: take_linking_turn
-- Awaited keys are linked by one transaction at a time: two that link at once could close a circle between them.
SELECT pg_advisory_xact_lock(25457, 2);

-- name: closes_circle
-- Of these edges (child, parent): those whose parent comes, by way of others, after the child.
WITH RECURSIVE edge AS (
    SELECT * FROM unnest(%(children)s::bigint[], %(parents)s::bigint[]) AS n(child_id, parent_id)
),
above(child_id, id) AS (
    SELECT child_id, parent_id FROM edge
    UNION
    SELECT a.child_id, coalesce(e.parent_id, n.parent_id)
    FROM above a
    JOIN task_edge e ON e.child_id = a.id AND e.met IS NULL
    LEFT JOIN edge n ON e.parent_id IS NULL AND n.child_id = e.child_id
    WHERE coalesce(e.parent_id, n.parent_id) IS NOT NULL
)
SELECT child_id FROM above WHERE id = child_id;

-- name: set_linked
UPDATE task_edge e SET linked = true, parent_id = n.parent_id
FROM unnest(%(children)s::bigint[], %(places)s::smallint[], %(parents)s::bigint[]) AS n(child_id, place, parent_id)
WHERE e.child_id = n.child_id AND e.place = n.place;

-- name: read_parents
-- What a task comes after, in the order in which it was named.
SELECT e.key, e.parent_id, e.condition, p.state, e.met
FROM task_edge e LEFT JOIN task p ON p.id = e.parent_id
WHERE e.child_id = %(task)s
ORDER BY e.place
LIMIT %(rows_max)s;

-- name: read_upstream
-- What became of the parents of these tasks, with results as long as they fit: the size of what is stored is known
-- without unpacking it, so a result that is too large is never read.
SELECT e.child_id, coalesce(e.key, e.parent_id::text), coalesce(p.state, 'unknown'), r.bytes,
       CASE WHEN sum(r.bytes) FILTER (WHERE r.bytes <= %(bytes_max)s) OVER (PARTITION BY e.child_id ORDER BY e.place)
                 <= %(read_max)s AND r.bytes <= %(bytes_max)s THEN r.result::text END
FROM task_edge e
LEFT JOIN task p ON p.id = e.parent_id
LEFT JOIN LATERAL (
    SELECT pg_column_size(k.result) AS bytes, k.result FROM task_result k
    WHERE k.task_id = e.parent_id AND p.state = 'succeeded'
) r ON true
WHERE e.child_id = ANY(%(tasks)s::bigint[])
ORDER BY e.child_id, e.place;
