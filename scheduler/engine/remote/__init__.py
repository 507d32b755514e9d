"""Remote workers of one web process: what they offer, are given and report, all of it in batches."""
