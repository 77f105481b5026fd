"""What `explain` says of upstream's trees: every pass and op, TableGen against text, names over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.atlas import command, tablegen
from tritonsmith.atlas.source_files import Definition
from tritonsmith.facts import llvm_tree

from .regenerate_checkouts import COMMITS, History
from .regenerate_names import STORE, as_toml
from .regenerate_names import history as renamings

pytestmark = pytest.mark.real

# Passes and ops; docs/explain.md has the table.
COUNTS = {
    "2.1": (14, 41),
    "3.1": (30, 73),
    "2024-08-29": (33, 71),
    "3.2": (37, 78),
    "3.4": (75, 130),
    "3.6": (96, 164),
    "main": (115, 208),
}
# Files whose MLIR is not that of LLVM 19.
REFUSED = {"2.1": 2, "main": 7}


@pytest.mark.parametrize("version", COUNTS)
def test_every_pass_and_op_is_answered(tree: Callable[[str], Path], version: str) -> None:
    index = command.index_of(tree(version), [])
    asked = [one for one in index.definitions if one.kind in ("pass", "op")]
    passes = [one.name for one in asked if one.kind == "pass"]
    assert (len(passes), len(asked) - len(passes)) == COUNTS[version]
    found = {(one.kind, one.name): index.find(one.name, one.kind) for one in asked}
    assert {key: entries for key, entries in found.items() if len(entries) != 1} == {}
    assert [name for name in passes if not command.explain(index, name, "pass").places["implemented"]] == []


@pytest.mark.parametrize("version", COUNTS)
def test_tablegen_and_text_say_the_same(tree: Callable[[str], Path], version: str) -> None:
    llvm = next((one.prefix for one in llvm_tree.installed() if one.major == 19), None)  # Debian's
    if llvm is None or tablegen.program(llvm) is None:
        pytest.skip("no LLVM 19 with MLIR's .td files is installed")
    index = command.index_of(tree(version), [llvm])
    text = {(one.file, one.record): one for one in index.definitions}
    refused, compared = [], 0
    for file in index.tree.having(".td"):
        try:
            given = tablegen.read_exact(index.tree, file, llvm)
        except tablegen.TableGenError:
            refused.append(file)
            continue
        wanted = {one.record for one in text.values() if one.file == file}
        assert wanted <= {one.record for one in given}
        for one in given:
            if one.record in wanted:
                by_text = text[file, one.record]
                assert _known(tablegen.merge_text(one, by_text), by_text) == by_text
                compared += 1
    assert len(refused) == REFUSED.get(version, 0), refused
    assert compared > 30


def _known(one: Definition, by_text: Definition) -> Definition:
    """What the text can know: MLIR itself writes a summary for enums and interfaces that have none."""
    return replace(
        one,
        by=by_text.by,
        summary=by_text.summary and one.summary,
        description=by_text.description and one.description,
    )


def test_names_over_time_are_what_history_says(history: History) -> None:
    first, last = COMMITS["2.1"], COMMITS["main"]
    if not history.has(last):
        pytest.skip(f"the clone lacks {last[:10]}")
    assert as_toml(renamings(history.clone, first, last), first, last) == STORE.read_text(encoding="utf-8")
