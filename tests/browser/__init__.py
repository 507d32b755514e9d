"""Tests of the console: a real Chromium."""
