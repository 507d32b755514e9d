"""Tests of the console: sockets."""
