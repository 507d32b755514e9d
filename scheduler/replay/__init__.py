"""Replays a trace of past traffic under other limits, tenants and pools, in virtual time or live, and reports."""
