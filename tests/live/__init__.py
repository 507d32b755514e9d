"""Tests of the console: frames, rows and the feed."""
