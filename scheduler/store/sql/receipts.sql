-- name: hold_lease
-- The attempt that asks, kept from being ended while this transaction lasts; renewals go on. Zero rows: it is not current.
SELECT l.task_id, l.tenant_id, d.run_id, r.state, l.cancel_requested_at IS NOT NULL
FROM lease l JOIN demand d ON d.id = l.demand_id JOIN run r ON r.id = d.run_id
WHERE l.lease_id = %(lease)s AND l.demand_id < 0 AND (%(tenant)s::bigint IS NULL OR l.tenant_id = %(tenant)s)
FOR KEY SHARE OF l;

-- name: add_claim
-- Zero rows: the effect was claimed before.
INSERT INTO receipt (run_id, step, fingerprint, state, idempotency_key, lease_id)
VALUES (%(run)s, %(step)s, %(fingerprint)s, 'claimed', %(key)s, %(lease)s)
ON CONFLICT (run_id, step) DO NOTHING
RETURNING step;

-- name: lock_receipt
-- In a statement after the insertion: it has to see what was committed while that one waited.
SELECT c.fingerprint, c.state, c.idempotency_key, c.lease_id, c.unsure, c.receipt::text
FROM receipt c WHERE c.run_id = %(run)s AND c.step = %(step)s
FOR NO KEY UPDATE;

-- name: is_current
SELECT EXISTS (SELECT FROM lease WHERE lease_id = %(lease)s);

-- name: take_over
UPDATE receipt SET state = 'claimed', lease_id = %(lease)s, unsure = %(unsure)s, claimed_at = clock_timestamp()
WHERE run_id = %(run)s AND step = %(step)s AND state <> 'done';

-- name: commit_receipt
UPDATE receipt SET state = 'done', receipt = %(receipt)s::jsonb, committed_at = clock_timestamp()
WHERE run_id = %(run)s AND step = %(step)s AND state = 'claimed' AND lease_id = %(lease)s;

-- name: abandon_claim
UPDATE receipt SET state = 'abandoned', unsure = false
WHERE run_id = %(run)s AND step = %(step)s AND state = 'claimed' AND lease_id = %(lease)s;

-- name: list_receipts
SELECT step, state, idempotency_key, lease_id, unsure, receipt::text, extract(epoch FROM claimed_at)::float8,
       extract(epoch FROM committed_at)::float8
FROM receipt WHERE run_id = %(run)s ORDER BY claimed_at, step LIMIT %(rows_max)s;
