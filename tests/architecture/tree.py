"""The files of the project as its house rules see them."""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return every file that belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below some folders of the project."""
    roots = [ROOT / folder for folder in folders]
    return [path for path in tracked_files() if path.suffix == ".py" and any(map(path.is_relative_to, roots))]


@cache
def syntax(path: Path) -> ast.Module:
    """Return the parsed module."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    """Return a path as it is written in reports."""
    return path.relative_to(ROOT).as_posix()


def report(found: Iterable[object]) -> str:
    """Return what a rule found, one to a line, so that a failure can be worked through."""
    return "".join(f"\n  {each}" for each in found)


def text_files() -> Iterator[tuple[str, str]]:
    """Yield name and content of every text file; binary files (images) are passed over."""
    for path in tracked_files():
        try:
            yield name_of(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
