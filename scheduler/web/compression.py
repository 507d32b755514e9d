"""Pages go compressed: their text is a fifth of its size then, and nearly all of what a first view transfers.

Only pages. Files are compressed once when they are collected, and answers that carry an ETag are a few hundred bytes.
The token in a page's forms is masked anew for each answer, so its length tells nobody what it is.
"""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class PageCompression(GZipMiddleware):
    """Compresses HTML for whoever takes it."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """The answer, compressed if it is a page."""
        if response.has_header("ETag") or not response.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)
