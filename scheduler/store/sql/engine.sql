-- name: served_pools
SELECT id, name, executor, config::text, slots_max, lease_ttl_s FROM pool
WHERE executor IN ('python', 'llm', 'http') ORDER BY id;

-- name: tenant_slugs
SELECT id, slug FROM tenant;

-- name: vacuum_hot_tables
-- These tables hold little and turn over fast: clearing them takes milliseconds, waiting for autovacuum costs scans. They
-- keep their size: to give pages back, VACUUM waits up to five seconds for a moment in which nobody reads.
VACUUM (SKIP_LOCKED, TRUNCATE false) lease, task_delta, task_count, resource_state, fair_counter, fair_clock, class_credit, leader,
    waiting_depth, event_fresh, event_mark, event_listener;

-- name: commit_soon
-- For work that can be done again: what this session commits from here on is on disk within a moment, and nothing waits
-- for that.
SELECT set_config('synchronous_commit', 'off', false);

-- name: commit_safely
SELECT set_config('synchronous_commit', 'on', false);
