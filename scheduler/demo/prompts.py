"""What the demo's two tenants ask for: short chats of people who wait, and items of evaluations that nobody waits for.

Decides contents only; when and how many is the workload's to say.
"""

from __future__ import annotations

import random
from typing import Any, Final

QUESTIONS: Final = (
    "Where is my parcel?",
    "How do I change my delivery address?",
    "Can I return shoes that I have worn once?",
    "My voucher does not work. Why?",
    "Which of the two kettles is quieter?",
    "Do you deliver on Saturdays?",
    "I was charged twice. What now?",
    "Please cancel my order from this morning.",
    "Is the blue one still in stock?",
    "How long is the guarantee?",
)
SUITES: Final = ("refund-policy", "tone", "product-facts", "translation")
ANSWERS: Final = (
    "You can return it within thirty days.",
    "Please wait two working days for the refund.",
    "The blue kettle holds one and a half litres.",
    "Your order leaves our warehouse tonight.",
)
NEEDS: Final = {"openai": 1, "openai-concurrency": 1}
CHAT_DEADLINE_S: Final = 2.0
BAD_FRACTION: Final = 0.01
"""Of the evaluation's items, those that are no request at all, as happens in files made by hand."""


def chat(chance: random.Random) -> dict[str, Any]:
    """A chat message of somebody who waits for the answer, as a body of `POST /tasks`."""
    payload: dict[str, Any] = {"messages": [{"role": "user", "content": chance.choice(QUESTIONS)}], "max_tokens": 80}
    if chance.random() < 0.5:  # noqa: PLR2004  # half of them show the answer as it comes
        payload["stream"] = True
    return {
        "tenant": "acme",
        "pool": "llm",
        "kind": "chat",
        "priority": "high",
        "deadline_in": CHAT_DEADLINE_S,
        "timeout": 20,
        "payload": payload,
        "resources": NEEDS,
    }


def evaluation_item(run: str, number: int, chance: random.Random) -> dict[str, Any]:
    """One item of an evaluation, as a task of `POST /tasks/batch`."""
    suite = chance.choice(SUITES)
    question = f"Does this answer follow the rules on {suite}? {chance.choice(ANSWERS)}"
    payload: dict[str, Any] = {"messages": [{"role": "user", "content": question}], "max_tokens": 40}
    if chance.random() < BAD_FRACTION:
        payload = {"message": question}
    return {
        "pool": "llm",
        "kind": "eval",
        "priority": "low",
        "key": f"eval-{run}-{number}",
        "payload": payload,
        "resources": NEEDS,
        "tags": {"suite": suite},
    }
