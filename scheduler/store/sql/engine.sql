-- name: served_pools
SELECT id, name, executor, config::text, slots_max, lease_ttl_s FROM pool
WHERE executor IN ('python', 'llm', 'http') ORDER BY id;

-- name: tenant_slugs
SELECT id, slug FROM tenant;

-- name: vacuum_hot_tables
-- These tables hold little and turn over fast: clearing them takes milliseconds, waiting for autovacuum costs scans.
VACUUM (SKIP_LOCKED) lease, task_delta, task_count, resource_state, fair_counter, fair_clock, class_credit, leader,
    waiting_depth, event_fresh, event_mark, event_listener;
