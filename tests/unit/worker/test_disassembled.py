"""`disassembled`: which program reads a binary, and when its text of an earlier compile is taken."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import script_of_python
from tritonsmith.worker.file_context import disassembled
from tritonsmith.worker.messages import DisassemblerRequest

READ = "import sys; open(sys.argv[0] + '.runs', 'a').write('.'); print('text of', open(sys.argv[-1]).read())"


class Bench:
    """A disassembler that counts its runs, and binaries for it."""

    def __init__(self, root: Path, code: str = READ) -> None:
        self.root, self.program = root, script_of_python(root / "disassembler", code)
        self.tool = DisassemblerRequest("sass", (str(self.program),), ("-c",), str(root / "kept"))

    def text(self, content: str, name: str = "a.cubin") -> str | None:
        (self.root / name).write_text(content, encoding="utf-8")
        text = disassembled(self.tool, str(self.root / name))
        return None if text is None else text.decode()

    @property
    def runs(self) -> int:
        return len(self.program.with_name("disassembler.runs").read_bytes())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_same_binary_is_read_once_wherever_it_lies(bench: Bench) -> None:
    assert bench.text("one") == bench.text("one", "b.cubin") == "text of one\n"
    assert bench.runs == 1
    assert bench.text("two") == "text of two\n"
    assert bench.runs == 2


def test_other_flags_and_another_program_read_it_again(bench: Bench) -> None:
    bench.text("one")
    bench.tool = replace(bench.tool, flags=("-g",))
    bench.text("one")
    assert bench.runs == 2
    os.utime(bench.program, ns=(1, 1))
    bench.text("one")
    assert bench.runs == 3


def test_a_text_that_names_its_file_is_not_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, READ.replace("'text of'", "sys.argv[-1]"))
    assert bench.text("one") != bench.text("one", "b.cubin")
    # By its name alone: the text is the same in every folder.
    assert bench.text("one") == "a.cubin one\n"
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("left", [0, 20, 40, -1])
def test_a_damaged_text_is_made_again(bench: Bench, left: int) -> None:
    bench.text("one")
    (slot,) = (bench.root / "kept").iterdir()
    slot.write_bytes(slot.read_bytes()[:left])
    assert bench.text("one") == "text of one\n"
    assert bench.runs == 2
    assert bench.text("one") == "text of one\n"
    assert bench.runs == 2


def test_a_folder_that_cannot_be_made_costs_nothing_else(bench: Bench) -> None:
    (bench.root / "kept").write_bytes(b"")
    assert bench.text("one") == bench.text("one") == "text of one\n"
    assert bench.runs == 2


def test_what_fails_is_not_kept_and_the_next_program_is_asked(bench: Bench) -> None:
    old = script_of_python(bench.root / "old", "import sys; sys.exit('cannot read it')")
    bench.tool = replace(bench.tool, programs=(str(old), *bench.tool.programs))
    assert bench.text("one") == "text of one\n"
    bench.tool = replace(bench.tool, programs=(str(old),))
    assert bench.text("one") is None
