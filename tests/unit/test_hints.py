"""Commands in hints: sources say `invoke TASK`, and a person reads it as this command was typed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritonsmith
from tritonsmith.tasks import namespace

_SOURCES = Path(tritonsmith.__file__).parent
_REPOSITORY = Path(__file__).parents[2]
_NAMES = "|".join(map(re.escape, sorted(namespace.task_names, key=len, reverse=True)))
_ARGUMENT = r"(?: (?:--?[a-z]|[A-Z]{1,}\b|-- )| prints | makes | shows | lists | reads )"
_BARE = re.compile(rf"(?<![\w./-])(?<!invoke )(?:{_NAMES}){_ARGUMENT}")
_OTHER = re.compile(rf"(?:tritonsmith|bootstrap) (?:{_NAMES})\b")
_KEPT = {  # what a file or a lock says, for whoever reads it
    "tritonsmith kernel.compile",
    "tritonsmith kernel.compile ",
    "Written by tritonsmith kernel.inline-ptx; include it in one file.",
    "clone tritonsmith and run it there: ./bootstrap pins ...",
    "git clone it and use ./bootstrap test",
    "kernel.compile --out ",
    "pins --live --ref ",
    "passes.dump --out ",
}


def _texts() -> Iterator[tuple[str, str]]:
    """Every string of the sources that is no docstring, with its place."""
    for path in sorted(_SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        docs = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield f"{path.relative_to(_SOURCES)}:{node.lineno}", node.value


def test_every_command_in_a_text_can_be_typed() -> None:
    texts = [(place, text) for place, text in _texts() if text not in _KEPT]
    assert len(texts) > 1000
    assert [(place, text) for place, text in texts if _BARE.search(text) or _OTHER.search(text)] == []


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["/some/bin/tritonsmith"], "tritonsmith"),
        (["/some/bin/invoke"], "invoke"),
        (["-m", "invoke"], "./bootstrap"),
    ],
)
def test_hints_name_the_program_that_was_called(argv: list[str], says: str, home: Path) -> None:
    real = [str(Path(sys.executable).with_name(Path(argv[0]).name))] if argv[0] != "-m" else []
    command = real or [sys.executable, *argv]
    done = subprocess.run(
        [*command, "up", "--env", "dev"],
        cwd=_REPOSITORY,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "TRITONSMITH_BOOTSTRAP": "./bootstrap"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"  - {says} setup-mlir --env dev, then {says} build-triton --env dev\n" in done.stderr


def test_bootstrap_tells_how_it_was_called() -> None:
    script = (_REPOSITORY / "bootstrap").read_text(encoding="utf-8")
    assert 'export TRITONSMITH_BOOTSTRAP="$0"' in script
