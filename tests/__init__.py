"""Tests. Their folders mirror the layers of the product."""
