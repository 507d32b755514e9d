"""cronoq-app: a multi-tenant scheduler and control plane for LLM and agent work."""
