"""What the providers' pure knowledge guarantees."""
