"""Embeddings out of an answer.

Decides their order, which is that of the inputs. It must never leave one out.
"""

from __future__ import annotations

from scheduler.providers.answers import Answer
from scheduler.providers.fields import count, mapping, text
from scheduler.providers.usage import embeddings_usage


def read_embeddings(body: object) -> Answer | None:
    """The vectors in the order of their inputs; None when the answer holds none."""
    fields = mapping(body)
    data = fields.get("data")
    if not isinstance(data, list) or not data:
        return None
    in_order = sorted(map(mapping, data), key=lambda each: count(each.get("index")) or 0)
    vectors = [each.get("embedding") for each in in_order]
    if any(vector is None for vector in vectors):
        return None
    return Answer(model=text(fields.get("model")), vectors=vectors, usage=embeddings_usage(fields.get("usage")))
