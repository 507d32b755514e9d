-- name: count_try
-- Counts a try, unless it comes too early: then it is not counted, and the row says how long to wait. Of any number at
-- the same moment each sees what those before it left. Tries leak away evenly.
WITH tried AS (
    INSERT INTO sign_in_count AS c (key, tries, known, last_at, free_at)
    SELECT %(key)s, 1, false, moment.now, moment.now FROM (SELECT clock_timestamp() AS now) moment
    ON CONFLICT (key) DO UPDATE SET (tries, last_at, free_at) = (
        SELECT n.tries, n.at, n.at + make_interval(secs =>
            CASE WHEN ceil(n.tries) < %(free)s THEN 0.0
                 ELSE least(%(first_s)s * 2.0 ^ least(ceil(n.tries) - %(free)s, 16.0), %(longest_s)s) END)
        FROM (SELECT greatest(c.tries - extract(epoch FROM t.at - c.last_at)::float8 * %(free)s / %(leak_s)s, 0.0) + 1.0,
                     t.at
              FROM (SELECT clock_timestamp()) AS t(at)) AS n(tries, at))
    WHERE c.free_at <= clock_timestamp()
    RETURNING c.known
)
SELECT known, 0.0::float8 FROM tried
UNION ALL
SELECT c.known, greatest(extract(epoch FROM c.free_at - clock_timestamp())::float8, 0.001)
FROM sign_in_count c WHERE c.key = %(key)s AND NOT EXISTS (SELECT FROM tried);

-- name: know
UPDATE sign_in_count SET tries = 0, known = true, last_at = clock_timestamp(), free_at = clock_timestamp()
WHERE key = %(key)s;

-- name: take_back
UPDATE sign_in_count SET tries = greatest(tries - 1, 0), free_at = least(free_at, clock_timestamp())
WHERE key = %(key)s;

-- name: forget
DELETE FROM sign_in_count WHERE key IN (
    SELECT key FROM sign_in_count
    WHERE known AND last_at < clock_timestamp() - make_interval(secs => %(known_s)s)
       OR NOT known AND last_at < clock_timestamp() - make_interval(secs => %(keep_s)s)
    LIMIT %(rows_max)s FOR UPDATE SKIP LOCKED);
