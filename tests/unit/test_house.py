"""The house's own rules, as far as a test can hold them."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from tests.unit import sources
from tests.unit.sources import SOURCES

pytestmark = sources.together

_REPOSITORY = Path(__file__).parents[2]
_ARCHITECTURE = (_REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_who_searches_for_a_class_finds_one() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for name, tree in sources.trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert len(homes) > 300
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


# How the worker is reached: where it lies, the names of its own entry, the border that turns rows into texts.
_DOOR = "compiler/call.py"
_REACHES = re.compile(
    r"worker\.FOLDER|worker import FOLDER|\b(?:row_of|request_of|refusal_text|read_request)\b"
)


def test_one_module_is_the_door_to_the_worker() -> None:
    reaching = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if path.parent.name != "worker" and _REACHES.search(path.read_text(encoding="utf-8"))
    }
    assert reaching == {_DOOR}


@pytest.mark.parametrize(
    "planted", ["str(worker.FOLDER)", "from x.worker import FOLDER", "row_of(Row, line)"]
)
def test_a_second_door_is_found(planted: str) -> None:
    assert _REACHES.search(planted)


def _listed() -> list[str]:
    """Paths below src/tritonsmith that docs/architecture.md lists, with a line for each."""
    _, _, rest = _ARCHITECTURE.partition("\nsrc/tritonsmith/\n")
    lines = rest.partition("\ntests/")[0].splitlines()
    paths: list[str] = []
    parents: list[str] = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[: depth - 1], line.split()[0]]
        paths.append("".join(parents))
    return paths


def test_the_architecture_lists_every_package_and_no_other() -> None:
    packages = {path.parent.relative_to(SOURCES).as_posix() + "/" for path in SOURCES.rglob("__init__.py")}
    modules = {path.name for path in SOURCES.glob("*.py")} - {"__init__.py"}
    listed = _listed()
    assert sorted(listed) == sorted((packages - {"./"}) | modules)


def test_the_architecture_lists_them_in_the_order_of_their_imports() -> None:
    content = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [path.removesuffix("/").removesuffix(".py") for path in _listed()]
    contracts = [each for each in content["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    assert len(contracts) > 2
    for contract in contracts:
        (home,) = contract.get("containers", ["tritonsmith"])
        inside = f"{home}.".removeprefix("tritonsmith.").replace(".", "/")
        layers = [
            [f"{inside}{name.strip().removeprefix('tritonsmith.')}" for name in layer.split("|")]
            for layer in contract["layers"]
        ]
        floors = [[listed.index(name) for name in layer if name in listed] for layer in layers]
        found = [floor for floor in floors if floor]
        assert all(max(upper) < min(lower) for upper, lower in itertools.pairwise(found)), contract


def test_the_architecture_names_files_that_exist() -> None:
    names = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|toml|cmake|json))`", _ARCHITECTURE))
    assert len(names) > 15
    files = [
        f"/{path.relative_to(_REPOSITORY).as_posix()}"
        for folder in ("src", "configs", "tests")
        for path in (_REPOSITORY / folder).rglob("*")
    ]
    others = {"compile_commands.json", "setup.py"}  # upstream's, and what a build writes
    assert {name for name in names if not any(path.endswith(f"/{name}") for path in files)} <= others


def test_the_index_of_the_docs_links_every_page() -> None:
    folder = _REPOSITORY / "docs"
    linked = re.findall(r"\]\(([^)]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert len(linked) == len(set(linked))
    assert {path.name for path in folder.glob("*.md")} - {"README.md"} == set(linked) - {"../CONTRIBUTING.md"}


def test_pages_are_wrapped_at_100_columns() -> None:
    """But for tables, code and lines that cannot be broken: headings, images, links by themselves."""
    pages = [*_REPOSITORY.glob("*.md"), *(_REPOSITORY / "docs").glob("*.md")]
    assert len(pages) > 20
    long = []
    for page in pages:
        code = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.startswith("```")
            if len(line) > 100 and not code and not line.startswith(("|", "#", "!", "[")):
                long.append(f"{page.name}:{number}")
    assert long == []
    readme = (_REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(readme) <= 120
    assert max(map(len, readme)) <= 100


def test_functions_that_are_named_in_texts_exist() -> None:
    """Another process imports `package.module:function`, where neither mypy nor a linter looks."""
    named = re.compile(r'"(tritonsmith(?:\.\w+)+):(\w+)"')
    found = [
        match.groups()
        for text in (path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
        for match in named.finditer(text)
    ]
    assert found
    assert [pair for pair in found if not hasattr(importlib.import_module(pair[0]), pair[1])] == []
