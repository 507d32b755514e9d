"""How routes are registered: as ninja does it, with the answers that all routes have in common made once.

Ninja makes a model for each status of each route. Ten statuses that carry a problem, on a hundred routes, were half of
what registering them took, at the start of each web process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ninja

from scheduler.api.fields import PROBLEMS, Problem


class _ProblemAnswer(ninja.Schema):
    response: Problem


_PROBLEM_ANSWERS: Final = dict.fromkeys(PROBLEMS, _ProblemAnswer)


class Router(ninja.Router):
    """Ninja's, for routes whose `response` names a model by status, and `PROBLEMS` for the rest."""

    def add_api_operation(  # type: ignore[override]  # all that it takes beside is handed on
        self, path: str, methods: list[str], view_func: Callable[..., Any], *, response: dict[Any, Any], **how: Any
    ) -> None:
        """Register a route."""
        own = {status: model for status, model in response.items() if status != PROBLEMS}
        super().add_api_operation(path, methods, view_func, response=own, **how)
        if PROBLEMS in response:
            self.path_operations[path].operations[-1].response_models |= _PROBLEM_ANSWERS
