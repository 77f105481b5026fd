"""What a dump names is run only if the dump was made here, and its texts are read as they were printed."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tritonsmith.compiler.dump import import_log
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump import run as dump_run
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.replay import replayer
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.inspect import show_passes as show

pytestmark = pytest.mark.unit

FOREIGN = DumpIndex(Path("there"), command="python k.py", python=sys.executable)


def _chosen(index: DumpIndex) -> Path | None:
    return replayer.choose(index, workspace.default(), env="", python=None, triton_opt=None).python


def test_a_dump_of_a_program_that_was_run_here(tmp_path: Path) -> None:
    space = workspace.default()
    prepared, step = dump_run.of_program((sys.executable, "-c", ""), space, Choices(), tmp_path / "out")
    dump_run.dump_program(prepared, step, space)
    made = indexes.read(tmp_path / "out")
    assert _chosen(made) == Path(sys.executable)
    indexes.require_own(made, space)
    for other in (replace(made, python="/bin/sh"), replace(made, command="python other.py")):
        assert indexes.own_interpreter(other, space) is None
        with pytest.raises(FactError, match="not made here"):
            indexes.require_own(other, space)


def test_a_log_that_was_imported_with_its_interpreter(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("// -----// IR Dump Before Inliner (inline) //----- //\nmodule {\n}\n", encoding="utf-8")
    assert _chosen(import_log.read(str(log), tmp_path / "out", python=sys.executable)) == Path(sys.executable)


def test_of_somebody_elses_dump_an_interpreter_is_asked_for() -> None:
    with pytest.raises(FactError, match="the interpreter that it names is not run") as error:
        _chosen(FOREIGN)
    assert f"if you trust it: --python {shlex.quote(sys.executable)}" in error.value.hints
    with pytest.raises(FactError, match="does not record which Triton"):
        _chosen(replace(FOREIGN, python=""))


def test_an_interpreter_of_an_environment_may_be_named(tmp_path: Path) -> None:
    space = workspace.default()
    ours = space.root / "envs" / "dev" / "venv" / "bin" / "python"
    assert indexes.own_interpreter(replace(FOREIGN, python=str(ours)), space) == ours
    out = space.root / "envs" / ".." / ".." / "evil"
    assert indexes.own_interpreter(replace(FOREIGN, python=str(out)), space) is None
    assert indexes.own_interpreter(replace(FOREIGN, python=str(tmp_path / "envs" / "python")), space) is None


def _imported(folder: Path) -> DumpIndex:
    """A dump of two texts, read from a log."""
    log = folder / "log"
    texts = ("module {\n}\n", 'module {\n  "a.b"() : () -> ()\n}\n')
    banner = "// -----// IR Dump Before Inliner (inline) //----- //\n"
    log.write_text("".join(banner + text for text in texts), encoding="utf-8")
    import_log.read(str(log), folder / "out", python=sys.executable)
    return indexes.read(folder / "out")


def test_a_text_that_is_not_what_was_printed_is_refused(tmp_path: Path) -> None:
    made = _imported(tmp_path)
    dump = made.dumps[1]
    printed = made.content(dump)
    for other, why in ((b"x\n", "it has 2 bytes, and"), (printed.replace(b"a.b", b"a.c"), "its checksum")):
        made.path(dump).write_bytes(other)
        for read in (
            partial(made.content, dump),
            partial(made.text, dump),
            partial(show.find_text, made, dump.kernel, "a"),
        ):
            with pytest.raises(FactError, match=r"not what passes\.dump wrote") as error:
                read()
            assert why in (error.value.why or "")
            assert error.value.where == str(made.path(dump))
        # Commands that run a text take one that was edited by hand.
        assert made.content(dump, edited=True) == other


def test_a_link_out_of_the_folder_is_never_read(tmp_path: Path) -> None:
    made = _imported(tmp_path)
    dump = made.dumps[1]
    # Its content is right: the place alone counts.
    (tmp_path / "secret").write_bytes(made.content(dump))
    made.path(dump).unlink()
    (made.folder / dump.path).symlink_to(tmp_path / "secret")
    for edited in (False, True):
        with pytest.raises(FactError, match="outside its folder"):
            made.content(dump, edited=edited)
    with pytest.raises(FactError, match="outside its folder"):
        made.path(dump)


def test_a_folder_behind_a_link_and_a_link_in_it_are_read(tmp_path: Path) -> None:
    made = _imported(tmp_path)
    first, dump = made.dumps
    (tmp_path / "link").symlink_to("out")
    linked = indexes.read(tmp_path / "link")
    assert linked.text(dump) == made.text(dump)
    (made.folder / "moved").write_bytes(made.content(first))
    made.path(first).unlink()
    (made.folder / first.path).symlink_to(made.folder / "moved")
    assert linked.text(first).startswith("module")
