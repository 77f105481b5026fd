"""Commands that a person is told to type: in hints, which name the program that was called, and in the docs.

tests/integration/test_documented.py runs those of the docs.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.context import ParserContext

from tests import documented
from tests.documented import DocumentedCommand
from tests.unit import sources
from tritonsmith.cli import modes
from tritonsmith.cli.tasks import namespace
from tritonsmith.cli.tasks.option_fields import from_argv
from tritonsmith.core import command_line

pytestmark = sources.together

_REPOSITORY = Path(__file__).parents[2]
_NAMES = "|".join(map(re.escape, sorted(namespace.every, key=len, reverse=True)))
_ARGUMENT = r"(?: (?:--?[a-z]|[A-Z]{1,}\b|-- )| prints | makes | shows | lists | reads )"
_BARE = re.compile(rf"(?<![\w./-])(?<!invoke )(?<!docker )(?:{_NAMES}){_ARGUMENT}")
_OTHER = re.compile(rf"(?:tritonsmith|bootstrap) (?:{_NAMES})\b")
_FLAGGED = re.compile(rf"invoke ({_NAMES})\b([^,;:()]*)")
_TABLES = ("cli/modes.py", "cli/commands.py")  # of how commands are typed
_KEPT = {  # what a file or a lock says, for whoever reads it
    "tritonsmith kernel.compile",
    "tritonsmith kernel.compile ",
    "Written by tritonsmith kernel.export --as ptx; include it in one file.",
    "clone tritonsmith and run the command there: ./bootstrap pins ...",
    "clone the repository and use ./bootstrap test",
    "kernel.compile --out ",
    "kernel.compile --resources",
    "pipx run --spec ",
    "pins --live --ref ",
    "passes.dump --out ",
}


def _calls_of_command(path: str) -> Iterator[ast.Call]:
    """The calls of `command_line.command` in one module."""
    for node in sources.nodes(path):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command":
            yield node


def _texts() -> Iterator[tuple[str, str]]:
    """Every string of the sources for users, with its place: no docstring, nor a table of modes."""
    for path in sources.trees():
        if path in _TABLES:
            continue
        nodes = sources.nodes(path)
        docs = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        docs |= {id(call.args[0]) for call in _calls_of_command(path)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield f"{path}:{node.lineno}", node.value


@pytest.mark.slow
def test_every_command_in_a_text_can_be_typed() -> None:
    texts = [(place, text) for place, text in _texts() if text not in _KEPT]
    assert len(texts) > 1000
    assert [(place, text) for place, text in texts if _BARE.search(text) or _OTHER.search(text)] == []


def test_every_flag_in_a_text_is_one_of_its_task() -> None:
    flagged = [
        (place, task, flag)
        for place, text in _texts()
        for task, rest in _FLAGGED.findall(text)
        for flag in re.findall(r"(?<!\S)--[a-z-]+", rest)
    ]
    assert len(flagged) > 40
    assert [each for each in flagged if each[2] not in _flags(each[1])] == []


def _flags(command: str) -> set[str]:
    """The flags of a command and of its modes."""
    tasks = {command, *(mode.task for mode in modes.MODES if mode.command == command)}
    selecting = {mode.by.partition(" ")[0] for mode in modes.of_command(command)}
    return selecting.union(
        *(ParserContext("", args=namespace.every[task].arguments([])).flag_names() for task in tasks)
    )


def test_no_value_is_put_into_a_command_by_hand() -> None:
    """`command_line.command` quotes it."""
    texts = [
        (f"{path}:{node.lineno}", _shape(node))
        for path in sources.trees()
        for node in sources.nodes(path)
        if isinstance(node, ast.JoinedStr)
    ]
    assert len(texts) > 500
    by_hand = re.compile(rf"invoke (?:{_NAMES})(?: [A-Z-][^ ,;:`]*)*(?: --[a-z-]+)? \0")
    assert [each for each in texts if by_hand.search(each[1])] == []


def _shape(text: ast.JoinedStr) -> str:
    """With a mark in place of each value."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in text.values)


def test_every_command_that_is_written_can_be_parsed() -> None:
    calls = [
        (f"{path}:{node.lineno}", node)
        for path, tree in sources.trees().items()
        if "from tritonsmith.core.command_line import command" in _from_imports(tree)
        for node in _calls_of_command(path)
    ]
    assert len(calls) > 40
    assert [(place, why) for place, call in calls if (why := _why_not(call))] == []


def _from_imports(tree: ast.Module) -> list[str]:
    return [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom)]


def _why_not(call: ast.Call) -> str:
    """Why Invoke does not accept a call of `command_line.command`, with samples for its values."""
    task = call.args[0].value if isinstance(call.args[0], ast.Constant) else "build-triton"
    words = [word.value if isinstance(word, ast.Constant) else "sample" for word in call.args[1:]]
    flags = {
        str(one.arg): one.value.value if isinstance(one.value, ast.Constant) else "x" for one in call.keywords
    }
    line = shlex.split(command_line.command(str(task), *words, **flags).removeprefix("invoke"))
    return _not_taken(line) and _not_taken([*line, "--", "python"])  # some hints end before the program


def _not_taken(line: list[str]) -> str:
    """Why Invoke does not accept a command line; empty if it does."""
    name, *words = modes.resolved(line)
    try:
        from_argv(namespace.every[name], words[: words.index("--") if "--" in words else None])
    except (KeyError, ParseError) as error:
        return repr(error)
    return ""


def test_every_command_of_the_docs_can_be_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [command for page in documented.PAGES for command in documented.commands(page)]
    assert len(commands) > 180
    wrong = [(each, why) for each in commands if (why := _wrong_with(each, monkeypatch))]
    assert wrong == []


def _wrong_with(command: DocumentedCommand, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why Invoke does not accept a command."""
    monkeypatch.setattr(sys, "argv", ["tritonsmith", *command.words])
    name, *words = modes.resolved(command.words)
    try:
        context = ParserContext(name, args=namespace.every[name].get_arguments())
        if command.complete:
            Parser([context]).parse_argv([name, *words])
    except (KeyError, ParseError, ValueError) as error:
        return repr(error)
    return ""


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("invoke kernel.compil matmul.py", "compil"),
        ("invoke kernel.compile matmul.py --sweeep num_warps=4", "--sweeep"),
        ("invoke passes.list", "required positional"),
    ],
)
def test_a_command_that_is_wrong_is_seen(
    wrong: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"Run `{wrong}`, or\n```sh\n$ {wrong} # so\nprinted by invoke doctor\n```\n", encoding="utf-8"
    )
    found = documented.commands(page)
    assert [each.line for each in found] == [1, 3]
    assert says in _wrong_with(found[1], monkeypatch)


@pytest.mark.slow
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
