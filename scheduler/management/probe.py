"""``python -m scheduler.management.probe [--engine FILE]``: the health check of a container, exit code 0 or 1.

Decides only how to ask. It imports no framework, because it runs every few seconds.
"""

import http.client
import os
import sys
from pathlib import Path

from scheduler.management import sign_of_life

TIMEOUT_S = 4.0
OK = 200


def main(arguments: list[str]) -> int:
    """Ask the web process of this container, or look for its engine's sign of life; say what is wrong."""
    match arguments:
        case ["--engine", path]:
            fault = engine_fault(Path(path))
        case []:
            fault = web_fault(int(os.environ.get("PORT") or 8000))
        case _:
            fault = "usage: probe [--engine FILE]"
    if fault:
        sys.stderr.write(f"{fault}\n")
    return 1 if fault else 0


def engine_fault(path: Path) -> str:
    """Return what is wrong with the engine that touches ``path``, or nothing."""
    age_s = sign_of_life.age_s(path)
    return f"the engine's last sign of life is {age_s:.0f} s old" if age_s > sign_of_life.STALE_AFTER_S else ""


def web_fault(port: int) -> str:
    """Return what is wrong with the web process, or nothing."""
    # Asked by a name it answers to; a leading dot stands for the domain and all below it.
    host = os.environ.get("CRONOQ_ALLOWED_HOSTS", "127.0.0.1").split(",")[0].strip().lstrip(".")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/readyz", headers={"Host": host})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"the web process does not answer: {error}"
    finally:
        connection.close()
    return "" if status == OK else f"the web process is not ready: status {status}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
