"""What it means that a world breaks a promise."""

from __future__ import annotations


class Broken(AssertionError):
    """A promise that did not hold; the message is a sentence."""


def promise(kept: bool, sentence: str) -> None:
    """Raises Broken with the sentence if it was not kept."""
    if not kept:
        raise Broken(sentence)
