"""Beside the product: a provider simulator, a demo workload, rehearsals."""
