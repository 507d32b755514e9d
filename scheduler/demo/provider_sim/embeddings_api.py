"""OpenAI's embeddings: `POST /v1/embeddings`.

Decides the shape of requests and answers. It must never decide whether to answer.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Final

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.api import Json
from scheduler.demo.provider_sim.asks import Answer, Ask, invalid, read_fields, read_model, read_whole
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.openai_manners import OPENAI_MANNERS
from scheduler.demo.provider_sim.settings import Settings

INPUTS_MAX: Final = 2048


class EmbeddingsApi:
    """Embeddings, which never stream."""

    name: Final = "embeddings"
    manners: Final = OPENAI_MANNERS
    end: Final = b""
    stream_error: Final = b""

    def parse(self, request: Request, settings: Settings) -> Ask:  # noqa: ARG002 - the length of a vector is asked for
        """Read a request: texts, or token numbers. Raises Refused."""
        fields = read_fields(request.body)
        model = read_model(fields, embeds=True)
        given = fields.get("input")
        one = isinstance(given, str) or (isinstance(given, list) and all(type(each) is int for each in given))
        inputs = [given] if one and given else given
        if not isinstance(inputs, list) or not 0 < len(inputs) <= INPUTS_MAX:
            raise invalid("input", f"'input' must be a text or 1 to {INPUTS_MAX} of them.")
        if any(not isinstance(each, str | list) or not each for each in inputs):
            raise invalid("input", "'input' must hold texts or lists of tokens that are not empty.")
        tokens = sum(content.count_tokens(each) if isinstance(each, str) else len(each) for each in inputs)
        dimensions = read_whole(fields, "dimensions") or content.EMBEDDING_DIMENSIONS
        if dimensions > content.EMBEDDING_DIMENSIONS_MAX:
            raise invalid("dimensions", f"'dimensions' must be at most {content.EMBEDDING_DIMENSIONS_MAX}.")
        texts = tuple(each if isinstance(each, str) else json.dumps(each) for each in inputs)
        return Ask(
            model=model,
            prompt="\n".join(texts),
            input_tokens=tokens,
            tokens_at_door=tokens,
            inputs=texts,
            dimensions=dimensions,
            as_base64=fields.get("encoding_format") == "base64",
        )

    def whole(self, answer: Answer) -> Json:
        """The vectors; clients may ask for little-endian floats in base64."""
        ask = answer.ask
        vectors = [content.embedding(ask.model, each, ask.dimensions) for each in ask.inputs or ()]
        body: Json = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": _packed(vector) if ask.as_base64 else vector}
                for index, vector in enumerate(vectors)
            ],
            "model": ask.model,
        }
        usage = {"prompt_tokens": ask.input_tokens, "total_tokens": ask.input_tokens}
        return body | ({"usage": usage} if answer.tells_usage else {})

    def events(self, answer: Answer) -> list[bytes]:  # noqa: ARG002 - see above
        """None, ever: no request for embeddings asks for a stream."""
        return []


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
