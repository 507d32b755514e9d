"""Configuration, read once from the environment into one frozen value.

Decides which settings exist, their units and bounds, and which of them must agree with each other. A value out of
bounds is refused with a sentence that names the variable. It must never open a database, import Django, or fall back
to an insecure default.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

ENVIRONMENT_CHARS_MAX = 20
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SECRET_KEY_CHARS_MIN = 32


class ConfigurationError(ValueError):
    """The environment asks for something impossible; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything the process was told by its environment. Units end the names: ``_s`` seconds, ``_bytes_max`` bytes."""

    data_dir: Path
    database_url: str | None
    direct_database_url: str | None
    secret_key: str
    allowed_hosts: tuple[str, ...]
    origins: tuple[str, ...]
    debug: bool
    demo: bool
    environment: str
    port: int
    db_pool_max: int
    outgoing_networks: tuple[IPv4Network | IPv6Network, ...]

    payload_bytes_max: int
    batch_tasks_max: int
    batch_bytes_max: int
    json_depth_max: int
    plan_starts_max: int
    wait_timeout_max_s: float
    lease_ttl_default_s: float
    poll_interval_s: float
    leader_ttl_s: float
    snapshot_interval_s: float
    shutdown_grace_s: float
    event_keep_s: float

    @property
    def embedded(self) -> bool:
        """Whether the process uses the embedded PostgreSQL in ``data_dir`` rather than a server it was given."""
        return self.database_url is None

    @property
    def tls_only(self) -> bool:
        """Whether browsers reach the product over TLS only, so that cookies may be marked secure."""
        return all(urlsplit(origin).scheme == "https" for origin in self.origins)


class Bounds(NamedTuple):
    """Default of one numeric setting and the range inside which the product was designed to work."""

    default: int | float
    low: float
    high: float


# Variable CRONOQ_<NAME> sets the field <name>. A default that is whole asks for a whole number.
NUMBERS: Mapping[str, Bounds] = {
    "db_pool_max": Bounds(20, 1, 200),
    "payload_bytes_max": Bounds(262_144, 1_024, 16_777_216),
    "batch_tasks_max": Bounds(1_000, 1, 10_000),
    "batch_bytes_max": Bounds(5_242_880, 1_024, 67_108_864),
    "json_depth_max": Bounds(64, 1, 200),
    "plan_starts_max": Bounds(500, 1, 5_000),
    "wait_timeout_max_s": Bounds(60.0, 1.0, 300.0),
    "lease_ttl_default_s": Bounds(30.0, 1.0, 3_600.0),
    "poll_interval_s": Bounds(0.25, 0.01, 10.0),
    "leader_ttl_s": Bounds(3.0, 0.5, 60.0),
    "snapshot_interval_s": Bounds(1.0, 0.2, 60.0),
    "shutdown_grace_s": Bounds(5.0, 0.0, 3_600.0),
    "event_keep_s": Bounds(86_400.0, 60.0, 30 * 86_400.0),
}
# The next port is the provider simulator's.
PORT_BOUNDS = Bounds(8_000, 1, 65_534)

# (smaller, larger, why): the first must be below the second, or the product would contradict itself.
ORDERED: tuple[tuple[str, str, str], ...] = (
    ("payload_bytes_max", "batch_bytes_max", "a batch must have room for one payload of the largest size"),
    ("poll_interval_s", "leader_ttl_s", "a leader must renew its term before it ends"),
    ("poll_interval_s", "lease_ttl_default_s", "an expired lease must be noticed within its own length"),
)


def load(environ: Mapping[str, str]) -> Config:
    """Read the whole configuration. Raises ConfigurationError with a sentence that names the variable at fault.

    The only side effect is in the embedded default, where the secret key is created in the data directory (mode 0600)
    the first time.
    """
    data_dir = Path(environ.get("CRONOQ_DATA_DIR") or ".cronoq").expanduser().resolve()
    database_url = environ.get("DATABASE_URL") or None
    port = int(_number(environ, "PORT", PORT_BOUNDS))
    numbers = {name: _number(environ, f"CRONOQ_{name.upper()}", bounds) for name, bounds in NUMBERS.items()}
    _check_order(numbers)
    demo = _switch(environ, "DEMO", default=True)
    return Config(
        data_dir=data_dir,
        database_url=database_url,
        direct_database_url=environ.get("CRONOQ_DIRECT_DATABASE_URL") or database_url,
        secret_key=_secret_key(environ, data_dir, embedded=database_url is None),
        allowed_hosts=_hosts(environ, embedded=database_url is None),
        origins=_origins(environ, port, embedded=database_url is None),
        debug=_switch(environ, "CRONOQ_DEBUG", default=False),
        demo=demo,
        environment=_environment(environ, embedded=database_url is None, demo=demo),
        port=port,
        outgoing_networks=_networks(environ),
        **numbers,  # type: ignore[arg-type]  # whole numbers were made int by _number
    )


_chosen: list[Config] = []


def use(config: Config) -> None:
    """Let this process work with `config` instead of what its environment says.

    For programs that are told by their caller where to work. Raises ConfigurationError once it is too late.
    """
    if current.cache_info().currsize:
        raise ConfigurationError("The configuration of this process was read already; choose it before.")
    _chosen[:] = [config]


@cache
def current() -> Config:
    """Return the configuration of this process: chosen by `use`, or read from its environment when first asked for."""
    return _chosen[0] if _chosen else load(os.environ)


def _number(environ: Mapping[str, str], variable: str, bounds: Bounds) -> int | float:
    """Return one number inside its bounds, an int when its default is one."""
    text = environ.get(variable) or ""
    if not text:
        return bounds.default
    whole = isinstance(bounds.default, int)
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        noun = "a whole number" if whole else "a number"
        raise ConfigurationError(f"{variable} must be {noun}, not {text!r}.") from None
    # Written so that NaN, which compares false with everything, is refused as well.
    if not bounds.low <= value <= bounds.high:
        raise ConfigurationError(f"{variable} must be from {bounds.low} to {bounds.high}, not {text}.")
    return value


def _check_order(numbers: Mapping[str, float]) -> None:
    """Refuse limits that are fine alone and contradict each other."""
    for smaller, larger, why in ORDERED:
        if numbers[smaller] > numbers[larger]:
            raise ConfigurationError(
                f"CRONOQ_{smaller.upper()} ({numbers[smaller]}) must not exceed CRONOQ_{larger.upper()} "
                f"({numbers[larger]}): {why}."
            )


def _switch(environ: Mapping[str, str], variable: str, *, default: bool) -> bool:
    """Return a yes/no setting; anything but 0 and 1 is refused rather than guessed."""
    match environ.get(variable, ""):
        case "":
            return default
        case "1":
            return True
        case "0":
            return False
        case other:
            raise ConfigurationError(f"{variable} must be 0 or 1, not {other!r}.")


def _environment(environ: Mapping[str, str], *, embedded: bool, demo: bool) -> str:
    """Return the word for where this is, which every page shows. A server that was given is production unless told."""
    word = environ.get("CRONOQ_ENVIRONMENT", "").strip()
    if len(word) > ENVIRONMENT_CHARS_MAX or not word.isprintable():
        raise ConfigurationError(f"CRONOQ_ENVIRONMENT must be one word of at most {ENVIRONMENT_CHARS_MAX} characters.")
    if word:
        return word
    if embedded:
        return "demo" if demo else "local"
    return "production"


def _hosts(environ: Mapping[str, str], *, embedded: bool) -> tuple[str, ...]:
    """Return the host names to answer to. Only the embedded default has any of its own: loopback."""
    hosts = _words(environ, "CRONOQ_ALLOWED_HOSTS")
    if not hosts:
        if not embedded:
            raise ConfigurationError("CRONOQ_ALLOWED_HOSTS must name the hosts to answer to, separated by commas.")
        return LOOPBACK_HOSTS
    if "*" in hosts:
        raise ConfigurationError("CRONOQ_ALLOWED_HOSTS must name hosts; * would answer to any of them.")
    return hosts


def _origins(environ: Mapping[str, str], port: int, *, embedded: bool) -> tuple[str, ...]:
    """Return the origins that browsers may come from, each ``scheme://host[:port]``."""
    origins = _words(environ, "CRONOQ_ORIGINS")
    if not origins:
        if not embedded:
            raise ConfigurationError("CRONOQ_ORIGINS must name the console's origins, for example https://cq.example.")
        return tuple(f"http://{host}:{port}" for host in LOOPBACK_HOSTS)
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in {"http", "https"} or not parts.hostname or origin != f"{parts.scheme}://{parts.netloc}":
            raise ConfigurationError(f"CRONOQ_ORIGINS holds {origin!r}, which is not of the form https://host[:port].")
    return origins


def _networks(environ: Mapping[str, str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks that are not public and may be posted to all the same; none unless they are named."""
    words = _words(environ, "CRONOQ_OUTGOING_NETWORKS")
    try:
        return tuple(ip_network(word) for word in words)
    except ValueError as error:
        raise ConfigurationError(f"CRONOQ_OUTGOING_NETWORKS must hold networks such as 10.0.0.0/8: {error}.") from None


def _words(environ: Mapping[str, str], variable: str) -> tuple[str, ...]:
    """Split a list separated by commas."""
    return tuple(word.strip() for word in environ.get(variable, "").split(",") if word.strip())


def _secret_key(environ: Mapping[str, str], data_dir: Path, *, embedded: bool) -> str:
    """Return the key that signs sessions: given, in a given file, or made once for the embedded default."""
    key = environ.get("CRONOQ_SECRET_KEY", "")
    path = environ.get("CRONOQ_SECRET_KEY_FILE", "")
    if key and path:
        raise ConfigurationError("Set CRONOQ_SECRET_KEY or CRONOQ_SECRET_KEY_FILE, not both.")
    if path:
        key = _read_secret(Path(path))
    elif not key:
        if not embedded:
            raise ConfigurationError("CRONOQ_SECRET_KEY or CRONOQ_SECRET_KEY_FILE must be set beside DATABASE_URL.")
        key = _own_secret(data_dir / "secret_key")
    if len(key) < SECRET_KEY_CHARS_MIN:
        raise ConfigurationError(f"The secret key must have at least {SECRET_KEY_CHARS_MIN} characters.")
    return key


def _read_secret(path: Path) -> str:
    """Return the stripped text of a secret file."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"CRONOQ_SECRET_KEY_FILE {path} cannot be read: {error}.") from error


def _own_secret(path: Path) -> str:
    """Return the key in the data directory, made the first time. Two processes that start at once agree on one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            fresh = path.with_name(f".{path.name}.{os.getpid()}")
            fresh.touch(mode=0o600)
            fresh.write_text(secrets.token_urlsafe(48), encoding="utf-8")
            try:
                # A hard link, unlike a rename, does not replace the key another process has just put there.
                path.hardlink_to(fresh)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(f"The data directory {path.parent} cannot be used: {error}.") from error
