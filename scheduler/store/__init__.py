"""All SQL of the product, in named `.sql` files; functions here run one statement each and return policy types.

Nothing in this layer decides: a statement names the state it expects, and zero rows is an answer. Functions use
Django's connection of the calling thread, so they take part in the caller's transaction.
"""
