"""Tests of the console: pages and forms."""
