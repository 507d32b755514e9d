"""Programs as users of cronoq write them; only their import is ours. Each is run as a test."""
