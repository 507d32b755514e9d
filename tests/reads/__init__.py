"""Tests of what pages and the API read."""
