"""The worker protocol without any I/O: messages, and what may follow what on either side. PROTOCOL.md is its text."""
