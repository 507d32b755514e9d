"""Page- and resource-shaped queries. Never write, never decide."""
