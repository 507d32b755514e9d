"""Trace replay: reading, virtual time, figures, and the report."""
