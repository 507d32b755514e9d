"""Guarantees of set-up, configuration and the embedded server."""
