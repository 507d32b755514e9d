"""Tests of the REST API, over real HTTP where it matters."""
