-- name: add_fault
-- The first word of an attempt stands.
INSERT INTO attempt_fault (lease_id, task_id, exception, traceback)
VALUES (%(lease)s, %(task)s, %(exception)s, %(traceback)s)
ON CONFLICT (lease_id) DO NOTHING;

-- name: faults_of_task
SELECT lease_id, exception, traceback FROM attempt_fault WHERE task_id = %(task)s
ORDER BY lease_id DESC LIMIT %(rows_max)s;
