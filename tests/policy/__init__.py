"""What the pure core guarantees."""
