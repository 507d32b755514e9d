"""Tests of the use cases: one verb, one transaction."""
