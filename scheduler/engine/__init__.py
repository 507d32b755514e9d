"""The runtime: long-lived loops, signals and executors. No SQL text, no decisions."""
