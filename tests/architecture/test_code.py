"""House rules about the code itself that no linter knows."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, name_of, python_files, report, syntax, tracked_files

PURE = ("scheduler/policy", "scheduler/protocol", "scheduler/providers")
CLOCK_CALLS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"}
CLOCKS = {"datetime", "date", "time"}
SQL = re.compile(
    r"^\s*(--[^\n]*\n\s*)*("
    r"SELECT\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|WITH\s+(RECURSIVE\s+)?\w+\s+AS\s|TRUNCATE\s|"
    r"(CREATE|ALTER|DROP)\s+(TABLE|INDEX|DATABASE|SCHEMA|SEQUENCE|FUNCTION|TRIGGER|VIEW|TYPE)\s|"
    r"(LISTEN|NOTIFY|SET)\s+\w+\s*$|SET\s+(LOCAL|SESSION)\s)"
)
SQL_ALLOWED_IN = {
    # Starting a server and creating its database comes before there is a store.
    "scheduler/postgres.py",
    # The bell's wire is LISTEN and NOTIFY on a connection of its own; it asks and changes nothing.
    "scheduler/engine/doorbell.py",
    # A command that measures makes and drops the database it works in.
    "scheduler/management/own_database.py",
    # Taking turns to migrate comes before there are tables.
    "scheduler/sdk/embedded/home.py",
}
RAW_QUERIES = {"raw", "extra"}


def strings(tree: ast.Module) -> list[ast.Constant]:
    """Return the string literals of a module, those inside f-strings too, its docstrings not."""
    documented = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    ]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node for node in found if not any(node is document for document in documented)]


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT 1", True),
        ("\n  WITH due AS (SELECT 1) UPDATE task SET x = 1", True),
        ("-- name: claim\nUPDATE task SET state = 1", True),
        ("Select a pool to pause.", False),
        ("update the price", False),
        ("WITH care", False),
    ],
)
def test_sql_is_recognised(text: str, is_sql: bool) -> None:
    assert bool(SQL.match(text)) is is_sql


def test_sql_lives_in_the_store() -> None:
    outside = [
        path
        for path in python_files("scheduler", "cronoq_app")
        if not path.is_relative_to(ROOT / "scheduler" / "store")
        and "migrations" not in path.parts
        and name_of(path) not in SQL_ALLOWED_IN
    ]
    found = [
        (name_of(path), node.lineno, str(node.value)[:60])
        for path in outside
        for node in strings(syntax(path))
        if SQL.match(str(node.value))
    ]
    assert found == [], report(found)


def test_sql_files_live_in_the_store() -> None:
    homes = (ROOT / "scheduler" / "store" / "sql", ROOT / "scheduler" / "migrations")
    strays = [path for path in tracked_files() if path.suffix == ".sql" and not any(map(path.is_relative_to, homes))]
    assert strays == []


def test_no_query_is_smuggled_through_the_orm() -> None:
    found = [
        (name_of(path), node.lineno)
        for path in python_files("scheduler")
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RAW_QUERIES
        and isinstance(node.func.value, ast.Attribute)
        and node.func.value.attr == "objects"
    ]
    assert found == [], report(found)


def test_pure_code_reads_no_clock() -> None:
    found = [
        (name_of(path), node.lineno)
        for path in python_files(*PURE)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute)
        and node.attr in CLOCK_CALLS
        and isinstance(node.value, ast.Name)
        and node.value.id in CLOCKS
    ]
    assert found == [], report(found)


def test_the_contract_of_purity_covers_every_pure_package() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    covered = {module for contract in contracts if "pure" in contract["name"] for module in contract["source_modules"]}
    assert covered == {folder.replace("/", ".") for folder in PURE if (ROOT / folder / "__init__.py").exists()}


def test_every_module_says_what_it_is() -> None:
    found = [
        name_of(path)
        for path in python_files("cronoq_app", "scheduler", "tests")
        if "migrations" not in path.parts and syntax(path).body and not ast.get_docstring(syntax(path))
    ]
    assert found == [], report(found)


@pytest.mark.parametrize("mark", ["noqa", "type: ignore"])
def test_every_exception_to_a_check_names_it_and_gives_a_reason(mark: str) -> None:
    reasoned = {
        "noqa": re.compile(r"#\s*noqa: [A-Z]+\d+(, [A-Z]+\d+)*(  #| -) \S"),
        "type: ignore": re.compile(r"#\s*type: ignore\[[\w, -]+\](  #| -) \S"),
    }
    found = [
        (name_of(path), number)
        for path in python_files("cronoq_app", "scheduler", "tests", "manage.py")
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rf"#\s*{mark}", line) and not reasoned[mark].search(line)
    ]
    assert found == [], report(found)


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    found = [
        (name_of(path), node.lineno)
        for path in python_files("tests")
        if name_of(path) != "tests/support/waiting.py"
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert found == [], report(found)
