"""Tests of the SDK, through what its users see."""
