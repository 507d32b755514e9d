"""Use cases: one verb, one function, one transaction. A service loads, asks policy, applies; edges call it."""
