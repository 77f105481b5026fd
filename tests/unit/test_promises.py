"""Reading core/plan/ shows all that ever changes a disk: nothing else of the tool calls what does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.unit import sources

pytestmark = sources.together

_FREE = (
    "core/plan/",
    "worker/",
)  # the steps and their helpers; what runs in the interpreter of an environment
_METHODS = {"write_text", "write_bytes", "mkdir", "unlink", "rmdir", "symlink_to", "hardlink_to", "touch"}
_METHODS |= {"chmod", "lchmod", "rename", "extractall"}  # of paths and archives
_OS = {"chmod", "chown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "remove", "removedirs", "rename"}
_OS |= {"renames", "replace", "rmdir", "symlink", "truncate", "unlink", "utime"}
_MODULES = {"shutil", "tempfile"}
_MODE = re.compile(r"'(?=.*[wax+])[rwaxbt+]{1,3}'")  # that writes
_FLAGS = re.compile(r"\bos\.O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)\b")


def changes(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines of a module that change files, or import what is there for that."""
    for node in nodes:
        match node:
            case ast.Call():
                found = _changes(node)
            case ast.Import():
                found = any(alias.name in _MODULES for alias in node.names)
            case ast.ImportFrom(module="os"):
                found = any(alias.name in _OS | {"open"} for alias in node.names)
            case ast.ImportFrom(module="shutil"):
                found = any(alias.name != "which" for alias in node.names)  # which looks, and changes nothing
            case ast.ImportFrom():
                found = node.module in _MODULES
            case _:
                continue
        if found:
            yield node.lineno


def _changes(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if owner != "os" and name not in ("open", "savefig"):
        if name == "replace":  # a text's takes two words, a dataclass's takes fields
            return bool(owner) and len(call.args) == 1 and not call.keywords
        return bool(owner) and name in _METHODS
    given = [ast.unparse(word) for word in (*call.args, *(word.value for word in call.keywords))]
    if owner == "os":
        writes = bool(_FLAGS.search(" ".join(given))) and "os.devnull" not in given
        return name in _OS or (name == "open" and writes)
    if name == "open":  # tarfile's may get a file that is open
        return any(map(_MODE.fullmatch, given)) and all(word.arg != "fileobj" for word in call.keywords)
    return given[:1] != ["picture"]  # `savefig` into memory, where that is what it is called


def test_nothing_outside_of_plan_changes_a_file() -> None:
    names = [name for name in sources.trees() if not name.startswith(_FREE)]
    assert len(names) > 250
    found = [f"{name}:{line}" for name in names for line in changes(sources.nodes(name))]
    assert found == [], "a step, or a function of core/plan/files.py, does that"


@pytest.mark.parametrize(
    "planted",
    [
        "path.write_text(text, encoding='utf-8')",
        "path.parent.mkdir(parents=True, exist_ok=True)",
        "(folder / name).unlink(missing_ok=True)",
        "fresh.replace(path)",
        "with path.open('w', encoding='utf-8') as file: pass",
        "path.open(mode='xb')",
        "open(path, 'a')",
        "os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)",
        "os.open(name, flags | os.O_TRUNC)",
        "os.replace(one, other)",
        "from os import remove",
        "import shutil",
        "import os, tempfile",
        "from shutil import which, move",
        "def late():\n    from shutil import rmtree",
        "tarfile.open(path, 'w:gz').extractall(folder)",
        "figure.savefig(path)",
    ],
)
def test_a_change_that_somebody_adds_is_found(planted: str) -> None:
    assert list(changes(ast.walk(ast.parse(planted))))


@pytest.mark.parametrize(
    "harmless",
    [
        "text.replace('a', 'b')",
        "dataclasses.replace(step, phase='x')",
        "replace(step)",
        "path.open('rb', buffering=0)",
        "path.open()",
        "os.open(path, os.O_RDONLY | os.O_NONBLOCK)",
        "os.open(os.devnull, os.O_WRONLY)",
        "tarfile.open(fileobj=stream, mode='w')",
        "names.remove(name)",
        "from shutil import which",
        "files.write_atomically(path, text)",
    ],
)
def test_what_only_looks_like_one_is_none(harmless: str) -> None:
    assert not list(changes(ast.walk(ast.parse(harmless))))
