"""The worker protocol without any I/O."""
