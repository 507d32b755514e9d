"""Statements against real PostgreSQL."""
