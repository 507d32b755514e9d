"""Pure decisions: values in, verdicts out. No clock, no chance, no database, no settings."""
