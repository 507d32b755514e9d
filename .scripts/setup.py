"""Make the virtual environment match its lock file, and find or install a Chromium for the browser tests.

Usage: ``python3 .scripts/setup.py run`` (what the product needs) or ``... dev`` (that and what checks and tests need).
Runs on the system's Python with the standard library only. A finished set-up is stamped with the digest of its lock
file, so the second run costs a few milliseconds; an interrupted one has no stamp and is done again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PYTHON_MIN = (3, 11)


def main(kind: str) -> None:
    """Bring the environment of ``kind`` up to date, one process at a time."""
    if sys.version_info < PYTHON_MIN:
        sys.exit(f"Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or newer is needed; this is {sys.version.split()[0]}.")
    with (ROOT / ".venv.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The larger environment contains the smaller one.
        if not any(_is_ready(each) for each in dict.fromkeys((kind, "dev"))):
            _make_venv()
            _install(kind)
            if kind == "dev":
                _provide_chromium()
            _stamp(kind).write_text(_digest(kind), encoding="ascii")


def _digest(kind: str) -> str:
    """Return what the environment depends on: the lock, this interpreter and where the environment is."""
    content = (ROOT / LOCKS[kind]).read_bytes() + repr((sys.version, str(VENV))).encode()
    return hashlib.sha256(content).hexdigest()


def _stamp(kind: str) -> Path:
    return VENV / f"ready-{kind}"


def _is_ready(kind: str) -> bool:
    """Whether an earlier run finished with the same lock."""
    stamp = _stamp(kind)
    return PYTHON.exists() and stamp.exists() and stamp.read_text(encoding="ascii") == _digest(kind)


def _make_venv() -> None:
    """Create the environment; one that was moved or whose interpreter is gone is made anew."""
    for kind in LOCKS:
        _stamp(kind).unlink(missing_ok=True)
    home = VENV / "home"
    place = f"{sys.base_prefix} {sys.version_info[:2]} {VENV}"
    if PYTHON.exists() and home.exists() and home.read_text(encoding="utf-8") == place:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    print("Creating the virtual environment in .venv", flush=True)
    _run(sys.executable, "-m", "venv", str(VENV))
    home.write_text(place, encoding="utf-8")


def _install(kind: str) -> None:
    """Install exactly what the lock names; every archive must have one of its hashes."""
    print(f"Installing {LOCKS[kind]}", flush=True)
    pip = (str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    # The lock is complete, so nothing is left to resolve.
    _run(*pip, "--require-hashes", "--no-deps", "-r", str(ROOT / LOCKS[kind]))


def _provide_chromium() -> None:
    """Have a Chromium that runs: the system's, else the distribution's when we are root, else Playwright's own."""
    if _system_chromium():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("Installing Chromium for the browser tests with apt-get", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", "chromium")):
            subprocess.run(["apt-get", *arguments], check=False, env=quiet, stdout=subprocess.DEVNULL)
        if _system_chromium():
            return
    print("Installing Chromium for the browser tests with Playwright", flush=True)
    with_system_libraries = ("--with-deps",) if os.geteuid() == 0 else ()
    _run(str(PYTHON), "-m", "playwright", "install", *with_system_libraries, "chromium")


def _system_chromium() -> bool:
    """Whether one of the usual names starts; some distributions ship a stub that only says it is elsewhere."""
    for name in CHROMIUM_NAMES:
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], check=False, capture_output=True).returncode == 0:
            return True
    return False


def _run(*command: str) -> None:
    """Run one step; a failure ends the set-up with the command that failed."""
    try:
        subprocess.run(command, check=True, cwd=ROOT)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"Set-up failed: {error}")


if __name__ == "__main__":
    if sys.argv[1:] not in [[kind] for kind in LOCKS]:
        sys.exit("usage: setup.py run|dev")
    main(sys.argv[1])
