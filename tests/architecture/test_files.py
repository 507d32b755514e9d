"""House rules about which files there are and what no file may hold."""

import re

from tests.architecture.tree import ROOT, name_of, python_files, report, text_files, tracked_files

FOLDERS = {"cronoq_app", "scheduler", "static", "templates", "tests"}
ROOT_FILES = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "docker-compose.yml",
    "manage.py",
    "pyproject.toml",
    "requirements-dev.lock",
    "requirements.lock",
}
MODULE_LINES_MAX = {"cronoq_app": 400, "scheduler": 400, "tests": 600}
# Locks are long by nature; everything else this large would be somebody else's file.
FILE_BYTES_MAX = 100_000
PICTURE_BYTES_MAX = 300_000

# Written in pieces, so that this file passes its own rule.
FORBIDDEN_TEXTS = {
    "a registry's host": re.compile("|".join(("py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.(org|com)"))),
    "a path of one machine": re.compile(r"(?<![\w./-])/" + r"(work|root|tmp|opt)/(?!\.\.\.)\w"),
    "a note to do something later": re.compile(r"\b(TO" + "DO|FIX" + r"ME|XX" + r"X)\b"),
}
# Where a path is an example of what a user types, or of where a container keeps things.
PATHS_ALLOWED_IN = {"Dockerfile", "docker-compose.yml"}


def test_nothing_else_stands_at_the_top() -> None:
    tops = {path.relative_to(ROOT).parts for path in tracked_files()}
    folders = {parts[0] for parts in tops if len(parts) > 1 and not parts[0].startswith(".")}
    files = {parts[0] for parts in tops if len(parts) == 1 and not parts[0].startswith(".")}
    assert folders <= FOLDERS
    assert files <= ROOT_FILES


def test_a_module_fits_a_reader() -> None:
    too_long = {
        name_of(path): lines
        for folder, lines_max in MODULE_LINES_MAX.items()
        for path in python_files(folder)
        if "migrations" not in path.parts and (lines := len(path.read_text(encoding="utf-8").splitlines())) >= lines_max
    }
    assert too_long == {}, report(too_long.items())


def test_modules_are_named_for_what_they_decide() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common", "base_utils"}
    assert [name_of(path) for path in python_files("cronoq_app", "scheduler", "tests") if path.stem in vague] == []


def test_no_text_speaks_of_hosts_machines_or_postponed_work() -> None:
    found = [
        (name, what, match.group())
        for name, text in text_files()
        for what, pattern in FORBIDDEN_TEXTS.items()
        if not (what == "a path of one machine" and name in PATHS_ALLOWED_IN)
        for match in pattern.finditer(text)
    ]
    assert found == [], report(found)


def test_every_file_is_our_own() -> None:
    large = {
        name_of(path)
        for path in tracked_files()
        if path.stat().st_size > (PICTURE_BYTES_MAX if path.suffix == ".png" else FILE_BYTES_MAX)
        and path.suffix != ".lock"
    }
    packed = {name for name, _ in text_files() if re.search(r"\.min\.(js|css)$|\.map$", name)}
    # The mark that tools keep when they strip comments: a licence somebody else asked to preserve.
    licensed = {
        name
        for name, text in text_files()
        if name.startswith(("static/", "templates/")) and re.search(r"/\*!|@licen[cs]e|Copyright \(c\)", text)
    }
    assert (large, packed, licensed) == (set(), set(), set())


def test_locks_pin_with_hashes_and_name_no_place() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
        entries = [line for line in lines if line and not line.startswith((" ", "#", "\t"))]
        assert entries
        assert [line for line in entries if not re.fullmatch(r"[A-Za-z0-9_.\-]+==[^\s;]+( ; [^\\]+)? \\", line)] == []
        assert [line for line in lines if "://" in line or line.lstrip().startswith("-")] == [
            line for line in lines if line.startswith("    --hash=sha256:")
        ]
