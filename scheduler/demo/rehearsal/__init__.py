"""Rehearsals: a bad day played through on purpose, with real processes and HTTP, held against what was promised."""
