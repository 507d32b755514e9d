"""What the provider simulator guarantees, and the executor against it."""
