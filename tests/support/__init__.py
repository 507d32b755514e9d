"""Helpers shared by tests: databases, processes, builders."""
