"""Tests of the runtime: an engine in a thread, handlers in this process, a real database."""
