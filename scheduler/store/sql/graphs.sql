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
-- Subqueries with OFFSET 0 are walked once for each row before them, along their index, `= ANY(ARRAY(…))` finds rows by
-- their ids, and `num_nulls(met) = 1` is an open edge for which task_edge_open is not tried: the statistics of these
-- tables are always old, and the optimizer's other ways read all open edges for each step through the graph.
WITH RECURSIVE verdict AS MATERIALIZED (
    SELECT * FROM unnest(%(parents)s::bigint[], %(conditions)s::text[], %(mets)s::boolean[])
        AS v(parent_id, condition, met)
),
fate AS MATERIALIZED (
    SELECT * FROM unnest(%(fate_conditions)s::text[], %(fate_mets)s::boolean[]) AS f(condition, met)
),
met_directly AS MATERIALIZED (
    SELECT e.child_id, v.met
    FROM verdict v
    CROSS JOIN LATERAL (
        SELECT child_id FROM task_edge
        WHERE parent_id = v.parent_id AND met IS NULL AND condition = v.condition OFFSET 0
    ) e
    UNION ALL
    SELECT d.child_id, d.met
    FROM unnest(%(edge_children)s::bigint[], %(edge_mets)s::boolean[]) AS d(child_id, met)
),
skipped(id) AS (
    SELECT c.id
    FROM met_directly d
    CROSS JOIN LATERAL (SELECT id FROM task WHERE id = d.child_id AND state = 'blocked' OFFSET 0) c
    WHERE NOT d.met
    UNION
    SELECT c.id
    FROM skipped s
    CROSS JOIN LATERAL (
        SELECT child_id FROM task_edge
        WHERE parent_id = s.id AND met IS NULL AND condition IN (SELECT condition FROM fate WHERE NOT met) OFFSET 0
    ) e
    CROSS JOIN LATERAL (SELECT id FROM task WHERE id = e.child_id AND state = 'blocked' OFFSET 0) c
),
reached AS MATERIALIZED (
    SELECT child_id AS id FROM met_directly
    UNION SELECT id FROM skipped
    UNION
    SELECT e.child_id
    FROM skipped s
    CROSS JOIN LATERAL (SELECT child_id FROM task_edge WHERE parent_id = s.id AND met IS NULL OFFSET 0) e
    UNION SELECT unnest(%(own)s::bigint[])
)
SELECT t.id FROM task t
WHERE t.id = ANY(ARRAY(SELECT id FROM reached)) AND t.state = 'blocked'
ORDER BY t.id
FOR NO KEY UPDATE OF t;

-- name: decide_followers
-- Decide the edges that lead away from what has ended, skip the locked tasks that can never start, and let go those that
-- wait for nothing any more. Rows without a state are blocked tasks that came after the locking: then nothing is done,
-- lock again and repeat. Edges of tasks that have left `blocked` are decided too, so that none stays open for ever.
WITH RECURSIVE verdict AS MATERIALIZED (
    SELECT * FROM unnest(%(parents)s::bigint[], %(conditions)s::text[], %(mets)s::boolean[])
        AS v(parent_id, condition, met)
),
fate AS MATERIALIZED (
    SELECT * FROM unnest(%(fate_conditions)s::text[], %(fate_mets)s::boolean[]) AS f(condition, met)
),
met_directly AS MATERIALIZED (
    SELECT e.child_id, e.place, v.met
    FROM verdict v
    CROSS JOIN LATERAL (
        SELECT child_id, place FROM task_edge
        WHERE parent_id = v.parent_id AND met IS NULL AND condition = v.condition OFFSET 0
    ) e
    UNION
    SELECT e.child_id, e.place, d.met
    FROM unnest(%(edge_children)s::bigint[], %(edge_places)s::smallint[], %(edge_mets)s::boolean[])
         AS d(child_id, place, met)
    CROSS JOIN LATERAL (
        SELECT child_id, place FROM task_edge
        WHERE child_id = d.child_id AND place = d.place AND met IS NULL OFFSET 0
    ) e
),
skipped(id) AS (
    SELECT c.id
    FROM met_directly d
    CROSS JOIN LATERAL (SELECT id FROM task WHERE id = d.child_id AND state = 'blocked' OFFSET 0) c
    WHERE NOT d.met
    UNION
    SELECT c.id
    FROM skipped s
    CROSS JOIN LATERAL (
        SELECT child_id FROM task_edge
        WHERE parent_id = s.id AND met IS NULL AND condition IN (SELECT condition FROM fate WHERE NOT met) OFFSET 0
    ) e
    CROSS JOIN LATERAL (SELECT id FROM task WHERE id = e.child_id AND state = 'blocked' OFFSET 0) c
),
reached AS MATERIALIZED (
    SELECT child_id, place, met FROM met_directly
    UNION
    SELECT e.child_id, e.place, f.met
    FROM skipped s
    CROSS JOIN LATERAL (
        SELECT child_id, place, condition FROM task_edge WHERE parent_id = s.id AND met IS NULL OFFSET 0
    ) e
    JOIN fate f ON f.condition = e.condition
),
late AS MATERIALIZED (
    SELECT c.id
    FROM (SELECT DISTINCT child_id FROM reached EXCEPT SELECT unnest(%(locked)s::bigint[])) r
    CROSS JOIN LATERAL (SELECT id FROM task WHERE id = r.child_id AND state = 'blocked' OFFSET 0) c
),
decided AS MATERIALIZED (SELECT child_id, place, met FROM reached WHERE NOT EXISTS (SELECT FROM late)),
marked AS (
    UPDATE task_edge e SET met = d.met FROM decided d
    WHERE e.child_id = ANY(ARRAY(SELECT child_id FROM decided))
      AND e.child_id = d.child_id AND e.place = d.place AND num_nulls(e.met) = 1
),
freed AS (
    SELECT d.child_id AS id
    FROM (SELECT child_id, count(*) AS n FROM decided GROUP BY child_id) d
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM task_edge WHERE child_id = d.child_id AND num_nulls(met) = 1 OFFSET 0
    ) open
    WHERE d.n = open.n AND d.child_id NOT IN (SELECT id FROM skipped)
),
moved AS (
    UPDATE task t
    SET state = CASE WHEN t.id NOT IN (SELECT id FROM freed) THEN 'skipped'
                     WHEN t.due_at > moment.now THEN 'scheduled'
                     ELSE 'ready' END,
        ready_at = CASE WHEN t.id IN (SELECT id FROM freed) AND (t.due_at > moment.now) IS NOT TRUE THEN moment.now END,
        due_at = CASE WHEN t.id IN (SELECT id FROM freed) AND t.due_at > moment.now THEN t.due_at END,
        finished_at = CASE WHEN t.id NOT IN (SELECT id FROM freed) THEN moment.now END
    FROM (SELECT clock_timestamp() AS now) moment
    WHERE t.id = ANY(ARRAY(SELECT id FROM freed
                           UNION ALL SELECT id FROM skipped WHERE NOT EXISTS (SELECT FROM late)))
      AND t.state = 'blocked'
    RETURNING t.id, t.state
)
SELECT id, state FROM moved
UNION ALL
SELECT id, NULL FROM late;

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
