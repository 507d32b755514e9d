"""What runs an attempt: one module per kind of executor."""
