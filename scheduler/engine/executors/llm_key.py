"""The credential of a provider, from where a pool's configuration says it is.

It must never be kept in the configuration, and never get into a message.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from scheduler.providers.llm_config import Endpoint, LlmConfigError

KEY_BYTES_MAX: Final = 4096


def read_api_key(endpoint: Endpoint) -> str | None:
    """The key; None when the endpoint names no place. Raises LlmConfigError."""
    if endpoint.api_key_env is not None:
        key = os.environ.get(endpoint.api_key_env, "").strip()
        if not key:
            raise LlmConfigError(
                f"The environment variable {endpoint.api_key_env} is not set, but api_key_env names it."
            )
        return key
    if endpoint.api_key_file is None:
        return None
    try:
        key = Path(endpoint.api_key_file).read_text(encoding="utf-8")[:KEY_BYTES_MAX].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LlmConfigError("The file that api_key_file names cannot be read.") from error
    if not key:
        raise LlmConfigError("The file that api_key_file names is empty.")
    return key
