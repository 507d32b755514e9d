-- name: newest_entry
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM ledger_entry_id_seq;

-- name: read_summed
SELECT coalesce((SELECT summed_id FROM spending_mark WHERE id = 1), 0);

-- name: have_mark
INSERT INTO spending_mark (id) VALUES (1) ON CONFLICT (id) DO NOTHING;

-- name: lock_mark
-- A transaction that has yet to come: the mark was written by another server, from which this database was restored.
SELECT summed_id, end_id, pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= end_xid
                          OR pg_snapshot_xmax(pg_current_snapshot())::text::bigint < end_xid
FROM spending_mark WHERE id = 1 FOR UPDATE;

-- name: set_end
UPDATE spending_mark SET end_id = %(last)s, end_xid = pg_snapshot_xmax(pg_current_snapshot())::text::bigint WHERE id = 1;

-- name: add_sums
-- An entry counts once in each of the ways in which cost is told apart: for everybody by the day in UTC, for its tenant
-- by the day in the zone that the tenant has now. A success counts with the first line of its attempt. Entries that are
-- alike in all of these ways are added up before they are told apart.
WITH entry AS (
    SELECT (e.at AT TIME ZONE 'UTC')::date AS day, (e.at AT TIME ZONE coalesce(t.time_zone, 'UTC'))::date AS own_day,
           e.tenant_id, e.pool_id, e.kind, coalesce(e.model, '') AS model, coalesce(e.priority, -1) AS priority,
           sum(e.provider_cost_nano) AS cost, sum(e.tenant_charge_nano) AS charge,
           sum(CASE WHEN e.outcome = 'waste' THEN e.provider_cost_nano ELSE 0 END) AS waste,
           sum(CASE WHEN e.outcome = 'success' AND (e.line = 0 OR NOT EXISTS (
               SELECT FROM ledger_entry o WHERE o.lease_id = e.lease_id AND o.line < e.line)) THEN 1 ELSE 0 END) AS success
    FROM ledger_entry e LEFT JOIN tenant t ON t.id = e.tenant_id
    WHERE e.id > %(after)s AND e.id <= %(last)s
    GROUP BY 1, 2, 3, 4, 5, 6, 7
)
INSERT INTO spending_day AS d (scope_id, day, by, what, cost_nano, charge_nano, waste_nano, successes)
SELECT v.scope_id, v.day, v.by, v.what, sum(e.cost), sum(e.charge), sum(e.waste), sum(e.success)
FROM entry e CROSS JOIN LATERAL (VALUES
    (0, e.day, 'tenant', e.tenant_id::text), (0, e.day, 'pool', e.pool_id::text), (0, e.day, 'kind', e.kind),
    (0, e.day, 'model', e.model), (0, e.day, 'class', e.priority::text),
    (e.tenant_id, e.own_day, 'pool', e.pool_id::text), (e.tenant_id, e.own_day, 'kind', e.kind),
    (e.tenant_id, e.own_day, 'model', e.model), (e.tenant_id, e.own_day, 'class', e.priority::text)
) v(scope_id, day, by, what)
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4
ON CONFLICT (scope_id, day, by, what) DO UPDATE
SET cost_nano = d.cost_nano + excluded.cost_nano, charge_nano = d.charge_nano + excluded.charge_nano,
    waste_nano = d.waste_nano + excluded.waste_nano, successes = d.successes + excluded.successes;

-- name: move_mark
UPDATE spending_mark SET summed_id = %(last)s WHERE id = 1;

-- name: read_discord
-- What the sums say of each day of everybody, and of each tenant, beside what the ledger says up to the mark.
WITH entry AS (
    SELECT (e.at AT TIME ZONE 'UTC')::date AS day, e.tenant_id, e.provider_cost_nano AS cost
    FROM ledger_entry e WHERE e.id <= coalesce((SELECT summed_id FROM spending_mark WHERE id = 1), 0)
),
said AS (
    SELECT scope_id, day, by, sum(cost_nano) AS cost FROM spending_day GROUP BY 1, 2, 3
),
compared AS (
    SELECT coalesce(s.day, l.day)::text AS what, s.cost AS summed, l.cost AS ledger
    FROM (SELECT d.day, d.by, d.cost FROM said d WHERE d.scope_id = 0) s
    FULL JOIN (SELECT day, w.by, sum(cost) AS cost FROM entry
               CROSS JOIN unnest('{tenant,pool,kind,model,class}'::text[]) w(by) GROUP BY 1, 2) l USING (day, by)
    UNION ALL
    SELECT t.slug, s.cost, l.cost
    FROM (SELECT scope_id, by, sum(cost) AS cost FROM said WHERE scope_id <> 0 GROUP BY 1, 2) s
    FULL JOIN (SELECT tenant_id AS scope_id, w.by, sum(cost) AS cost FROM entry
               CROSS JOIN unnest('{pool,kind,model,class}'::text[]) w(by) GROUP BY 1, 2) l USING (scope_id, by)
    JOIN tenant t ON t.id = coalesce(s.scope_id, l.scope_id)
)
SELECT DISTINCT ON (what) what, coalesce(summed, 0)::bigint, coalesce(ledger, 0)::bigint
FROM compared WHERE coalesce(summed, 0) <> coalesce(ledger, 0)
ORDER BY what;

-- name: clear_sums
DELETE FROM spending_day;

-- name: clear_mark
UPDATE spending_mark SET summed_id = 0, end_id = 0, end_xid = 0 WHERE id = 1;
