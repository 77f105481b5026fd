"""Files of others are read by `untrusted`: regular files of bounded size only, with predictable errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.unit import sources

pytestmark = sources.together

_PARSERS = {"ast.parse", "ET.fromstring", "json.load", "json.loads", "tokenize.open", "tomllib.load"}
_PARSERS |= {"tomllib.loads", "yaml.load", "yaml.safe_load"}
_WRITES = re.compile(r"'(?=.*[wax])[rwaxbt+]{1,3}'|.*\bos\.O_(WRONLY|CREAT)\b.*|_FOLDER|_NEW|os\.devnull")
_WORKER = ("worker",)  # runs in another interpreter, on requests that the tool wrote

# Modules that read or parse by themselves, and what that is.
_PACKAGE = "a file of this package"
_ANSWER = "what a process of the tool's answered: its worker, or a program that is trusted"
_RESULT = "a file that the tool's own process has just written"
_OWN = "a file that the tool wrote, in a folder of its own"
_GENERATED = "Python that the tool wrote from a tree that was parsed"
_KNOWN = {
    "atlas/tablegen.py": _ANSWER,
    "lab/bisect/report.py": _RESULT,
    "lab/bisect/llvm_range.py": _RESULT,
    "build/cmake.py": _PACKAGE,
    "build/debug_library/abi_check.py": _RESULT,
    "build/debug_library/relink.py": _OWN,
    "build/compile_commands.py": _RESULT,
    "build/triton/check_includes.py": _RESULT,
    "core/configs.py": _PACKAGE,
    "doctor/report.py": _ANSWER,
    "build/editors/container.py": _PACKAGE,
    "build/editors/merged_files.py": "one text or number between quotes, found by a pattern",
    "build/editors/command.py": _PACKAGE,
    "core/envs/receipts.py": "what it has just made",
    "facts/gpus.py": _ANSWER,
    "facts/python_env.py": _ANSWER,
    "facts/installed_tritons.py": "/proc",
    "inspect/export_c.py": _PACKAGE,
    "compiler/manifest.py": _RESULT,
    "compiler/report.py": "what it has just made",
    "compiler/interpreter.py": _ANSWER,
    "inspect/resources.py": _PACKAGE,
    "live/stages.py": "what it has just made",
    "check/limited.py": _ANSWER,
    "compiler/dump/binaries.py": _RESULT,
    "compiler/dump/index_writer.py": _RESULT,
    "compiler/dump/run.py": _RESULT,
    "lab/isolate/first_pass_with.py": _RESULT,
    "lab/isolate/issue_folder.py": _PACKAGE,
    "inspect/override.py": _RESULT,
    "lab/reduce/reduce_ir.py": _RESULT,
    "lab/reduce/oracles.py": _RESULT,
    "compiler/replay/run.py": _RESULT,
    "inspect/report/write.py": _PACKAGE,
    "core/plan/archive.py": "verified downloads, and archives of a build or of a checked entry",
    "core/plan/download.py": _OWN,
    "core/plan/fork_server.py": _ANSWER,
    "core/plan/steps/fetch.py": _OWN,
    "core/plan/programs.py": _RESULT,
    "core/plan/locks.py": _OWN,
    "core/plan/files.py": "a mark, after it was found to be a file",
    "core/plan/steps/files.py": "two files that are compared",
    "core/plan/steps/ninja.py": _RESULT,
    "core/plan/steps/pack.py": "files of an entry that `store.export` packs",
    "core/plan/steps/base.py": _RESULT,
    "core/plan/steps/uninstall.py": "a journal of its own, and the file that it is compared with",
    "core/plan/stopping.py": "/proc",
    "build/new_pass.py": _PACKAGE,
    "build/suites/results.py": _RESULT,
    "cli/tasks/passes_replay.py": _RESULT,
    "lab/report.py": _PACKAGE,
    "core/ui/console.py": "a line of the user's own recording, after its mark",
}


def reads(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines of a module that read a file or parse a text by other means than `untrusted`."""
    for node in nodes:
        if isinstance(node, ast.Call) and _reads(node):
            yield node.lineno


def _reads(call: ast.Call) -> bool:
    whole = ast.unparse(call.func)
    owner, _, name = whole.rpartition(".")
    if whole in _PARSERS:
        return True
    if owner.rpartition(".")[2] in ("untrusted", "source"):  # which call `untrusted`
        return False
    if name in ("read_text", "read_bytes"):
        return bool(owner)
    if name != "open" or owner in ("webbrowser", "tarfile"):
        return False
    words = (*call.args, *(word.value for word in call.keywords))
    return not any(_WRITES.fullmatch(ast.unparse(word)) for word in words)


def test_whoever_reads_a_file_of_others_does_it_by_untrusted() -> None:
    names = [name for name in sources.trees() if name.partition("/")[0] not in _WORKER]
    found = {name: [*reads(sources.nodes(name))] for name in names}
    del found["core/untrusted.py"]
    new = [f"{name}:{line}" for name, lines in found.items() if name not in _KNOWN for line in lines]
    assert new == [], "`untrusted` reads what others wrote; a file of the tool's own is listed above"
    assert [name for name in _KNOWN if not found.get(name)] == [], "no longer needed above"


@pytest.mark.parametrize(
    "planted",
    [
        "path.read_text(encoding='utf-8')",
        "(folder / name).read_bytes()",
        "open(path)",
        "path.open('rb')",
        "with path.open(mode='rb', buffering=0) as file: pass",
        "os.open(path, os.O_RDONLY)",
        "json.loads(text)",
        "tomllib.loads(text)",
        "ast.parse(text)",
        "tokenize.open(path)",
    ],
)
def test_a_reader_that_somebody_adds_is_found(planted: str) -> None:
    assert list(reads(ast.walk(ast.parse(planted))))


@pytest.mark.parametrize(
    "harmless",
    [
        "untrusted.read_text(path)",
        "untrusted.opened(path)",
        "untrusted.json_of(text)",
        "path.open('w', encoding='utf-8')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "read_text(path)",
        "webbrowser.open(url)",
    ],
)
def test_what_only_looks_like_one_is_none(harmless: str) -> None:
    assert not list(reads(ast.walk(ast.parse(harmless))))
