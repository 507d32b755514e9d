"""The provider simulator as a real process on a free port, for any test that needs a provider."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

STOP_TIMEOUT_S: Final = 10
REQUEST_TIMEOUT_S: Final = 10
ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class RunningProvider:
    """A simulator that runs. `url` has no path; the API is under `url + "/v1"`."""

    url: str
    process: subprocess.Popen[str]

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self.url}/v1"

    def stats(self, *, arrivals: bool = True) -> dict[str, Any]:
        """The counters; `arrivals` are rows of (offset_s, status, model, cause)."""
        found: dict[str, Any] = self.call("GET", "/stats" if arrivals else "/stats?arrivals=0")
        return found

    def set_faults(self, faults: Sequence[Mapping[str, object]]) -> None:
        """Replace the script of faults."""
        self.call("POST", "/faults", list(faults))

    def set_limits(self, **limits: object) -> None:
        """Change some limits; None lifts one."""
        self.call("POST", "/limits", limits)

    def reset(self) -> None:
        """Forget counters, faults and used-up limits."""
        self.call("POST", "/reset", {})

    def call(self, method: str, path: str, body: object | None = None) -> Any:
        """One request to the simulator, outside the client under test."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=REQUEST_TIMEOUT_S) as answer:
            return json.load(answer)


@contextmanager
def running_provider(
    *, faults: Sequence[Mapping[str, object]] = (), extra: Sequence[str] = (), **options: object
) -> Iterator[RunningProvider]:
    """Start a simulator, yield it, stop it.

    `options` are those of the command with underscores (`rate=50, burst=100, concurrency=20`); answers take 5 ms unless
    `latency_median_s` and `latency_sigma` say otherwise. `extra` goes on the command line as it is. The simulator ends
    with its parent, even when that is killed.
    """
    options = {"latency_median_s": 0.005, "latency_sigma": 0.0, "port": 0, **options}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler.demo.provider_sim", *flags, *extra, "--exit-on-stdin-eof"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the provider simulator ended with status {process.wait(STOP_TIMEOUT_S)}")
        provider = RunningProvider(line.split()[-1], process)
        if faults:
            provider.set_faults(faults)
        yield provider
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
