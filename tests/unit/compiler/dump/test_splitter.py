"""Streams taken apart: nothing is lost, whatever comes; kernels, changes, failures and output are found."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.compiler.dump.streams import HEAD, banner, module, old_banner, split, texts
from tests.unit.compiler.dump.test_timing import NEW
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump import splitter as dump_splitter
from tritonsmith.compiler.dump.splitter import Splitter

LOAD, SUM = "%0 = tt.load %arg0 : !tt.ptr<f32>", "%1 = arith.addf %0, %0 : f32"


def _report(name: str) -> str:
    """MLIR's, on a pipeline of one pass."""
    line = "===-------------------------------------------------------------------------==="
    return (
        f"{line}\n                         ... Execution time report ...\n{line}\n"
        "  Total Execution Time: 0.5000 seconds\n\n  ----Wall Time----  ----Name----\n"
        f"    0.5000 (100.0%)  {name}\n    0.5000 (100.0%)  Total\n\n"
    )


# ---------------------------------------------------------------- nothing is lost

_NAMES = st.sampled_from(["CSE", "Inliner", "TritonGPUCoalesce"])
_BANNERS = st.one_of(
    st.builds(lambda name: banner(name, name.lower()), _NAMES),
    st.builds(lambda name: old_banner(name, name.lower()), _NAMES),
    st.builds(lambda name: banner(name, "x", "'tt.func' operation: @add"), _NAMES),
    st.builds(lambda name: banner(f"{name} Failed", "x", when="After"), _NAMES),
    st.sampled_from(
        [
            "; *** IR Dump After InstCombinePass on add ***\n",
            "*** IR Dump After Global Value Numbering (gvn) ***\n",
            "# *** IR Dump After Slot index numbering (slotindexes) ***:\n",
            "// -----// NVPTX Dump //----- //\n",
            "// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\n",
            "// -----// IR Dump Before ",
        ]
    ),
)
_BODIES = st.sampled_from(
    [
        module(LOAD),
        module(LOAD, SUM),
        module(LOAD, kernel="mul", head=HEAD),
        "define void @add() {\n  ret void\n}\n",
        "# Machine code for function add: IsSSA\n\n# End machine code for function add.\n\n",
        "tt.func @add() {\n  tt.return\n}\n",
        "module {\n  %0 = tt.l",
        "module {\n}\n{-#\n  external_resources: {\n  }\n#-}\n",
        NEW,
    ]
)
_NOISE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["\n", "Dump ", "error: x\n", "LLVM ERROR: x\n", "loc(", "}\n", "#loc\n", "\r", "\udcff"]
    ),
)
_STREAMS = st.lists(st.one_of(_BANNERS, _BODIES, _NOISE), max_size=24).map(
    lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stream=_STREAMS, chunk=st.integers(1, 200))
def test_what_comes_out_is_what_went_in(stream: bytes, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = split(stream, Path(folder) / "out", chunk=chunk)
        assert b"".join(made.pieces()) == stream
        assert b"".join(indexes.read(made.folder).pieces()) == stream
        assert made.size == len(stream)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stream=_STREAMS, chunk=st.integers(1, 50))
def test_the_size_of_chunks_changes_nothing(stream: bytes, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        assert split(stream, here / "a", chunk=chunk).dumps == split(stream, here / "b").dumps


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(stream=st.binary(max_size=2000), chunk=st.integers(1, 500))
def test_any_bytes_are_taken(stream: bytes, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert b"".join(split(stream, Path(folder) / "out", chunk=chunk).pieces()) == stream


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stream=_STREAMS, chunk=st.integers(1, 100), pauses=st.sets(st.integers(0, 60)))
def test_what_is_shown_is_shown_once(stream: bytes, chunk: int, pauses: set[int]) -> None:
    """A program's own output, with pauses or without, up to what a pause made certain too early."""
    output = b"".join([b"one\n", stream.replace(b"Dump ", b"")])
    shown: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        splitter = Splitter(Path(folder), shown.append)
        for number, begin in enumerate(range(0, len(output), chunk)):
            splitter.feed(output[begin : begin + chunk])
            if number in pauses:
                splitter.idle()
        splitter.close()
    if b"xecution" not in output:
        assert b"".join(shown).replace(b"\n", b"") == output.replace(b"\n", b"")


@pytest.mark.parametrize(
    "piece", [b"Dump ", b"Dump \n", b"// -----// ", b"\n", b"*** IR Dump After x ***", b"x"]
)
def test_megabytes_of_one_thing_are_no_trap(piece: bytes, tmp_path: Path) -> None:
    stream = piece * ((4 << 20) // len(piece))
    made = split(stream, tmp_path / "out", chunk=1 << 16)
    assert made.size == len(stream)
    assert sum(map(len, made.pieces())) == len(stream)


def test_a_dump_that_is_too_long_to_hold_is_written_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_splitter, "KEPT", 1000)
    long = module(*[LOAD] * 100)
    stream = f"{banner('CSE', 'cse')}{long}{banner('Inliner', 'inline')}{module(SUM)}hello\n"
    made = split(stream, tmp_path / "out", chunk=64)
    assert b"".join(made.pieces()).decode() == stream
    assert texts(made)[0] == long
    assert [(dump.lines, dump.changed) for dump in made.dumps] == [
        (long.count("\n"), True),
        (module(SUM).count("\n"), None),
    ]


def test_output_that_is_too_long_to_hold_is_not_ir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_splitter, "KEPT", 1000)
    stream = f"{banner('CSE', 'cse')}{module(LOAD)}{'hello' * 10}\n" + "hello\n" * 1000
    made = split(stream, tmp_path / "out", chunk=64)
    assert b"".join(made.pieces()).decode() == stream
    assert texts(made) == [module(LOAD)]


# ---------------------------------------------------------------- what is found


def test_each_pass_has_a_file_named_by_its_number_and_its_argument(tmp_path: Path) -> None:
    stream = (
        banner("InlinerPass", "inline{x=1}") + module(LOAD, SUM) + banner("CSEPass", "cse") + module(LOAD)
    )
    made = split(stream, tmp_path / "out")
    assert [dump.path for dump in made.dumps] == ["add/000-inline.mlir", "add/001-cse.mlir"]
    assert texts(made) == [module(LOAD, SUM), module(LOAD)]
    assert [(dump.name, dump.argument, dump.pipeline) for dump in made.dumps] == [
        ("InlinerPass", "inline", "inline{x=1}"),
        ("CSEPass", "cse", "cse"),
    ]


def test_a_pass_changed_its_ir_if_the_next_one_finds_another(tmp_path: Path) -> None:
    first, second = module(LOAD, SUM), module(LOAD)
    stream = "".join(
        banner(name, name) + text for name, text in zip("abc", (first, second, second), strict=True)
    )
    made = split(stream, tmp_path / "out")
    assert [(dump.changed, dump.against) for dump in made.dumps] == [(True, 1), (False, 2), (None, None)]


def test_locations_are_no_change(tmp_path: Path) -> None:
    moved = module(LOAD, location=7)
    stream = banner("A", "a") + module(LOAD) + banner("B", "b") + moved + banner("C", "c") + module(SUM)
    made = split(stream, tmp_path / "out")
    assert [dump.changed for dump in made.dumps] == [False, True, None]
    assert texts(made)[1] == moved


def test_ir_between_what_llvm_logs_is_one_file(tmp_path: Path) -> None:
    ir = "define void @f() {\n  ret void\n}\n"
    begin, end = "; *** IR Dump Before {}Pass on [module] ***\n", "Running pass: {}Pass on [module]\n"
    index = split("".join(begin.format(name) + ir + end.format(name) for name in "ABC"), tmp_path)
    assert texts(index) == [ir] * 3
    assert len({index.path(dump).stat().st_ino for dump in index.dumps}) == 1
    assert (tmp_path / "output.log").read_text(encoding="utf-8").count("Running pass: ") == 3


def test_the_same_ir_is_one_file_with_two_names(tmp_path: Path) -> None:
    stream = banner("A", "a") + module(LOAD) + banner("B", "b") + module(LOAD)
    made = split(stream, tmp_path / "out")
    one, other = map(made.path, made.dumps)
    assert one.samefile(other)
    assert one.name != other.name


def test_what_a_pass_prints_of_itself_is_not_what_it_left(tmp_path: Path) -> None:
    inside = "// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\n"
    stream = (
        banner("Pipe", "pipe") + module(LOAD) + inside + module(SUM) + banner("CSE", "cse") + module(LOAD)
    )
    made = split(stream, tmp_path / "out")
    assert [(dump.inside, dump.changed, dump.against) for dump in made.dumps] == [
        (False, False, 2),
        (True, True, 0),
        (False, None, None),
    ]


def test_functions_between_modules_are_compared_with_their_like(tmp_path: Path) -> None:
    """Without module scope, as mlir-opt prints: a module's pass cannot be told from those inside it."""
    function = "tt.func @add() {{\n  {}\n}}\n\n"
    scope = "'tt.func' operation: @add"
    stream = (
        banner("Outer", "outer")
        + module(LOAD)
        + banner("A", "a", scope)
        + function.format("one")
        + banner("B", "b", scope)
        + function.format("two")
        + banner("Last", "last")
        + module(SUM)
    )
    made = split(stream, tmp_path / "out")
    assert [(dump.symbol, dump.changed) for dump in made.dumps] == [
        ("", None),
        ("add", True),
        ("add", None),
        ("", None),
    ]


def test_functions_that_banners_do_not_name(tmp_path: Path) -> None:
    """As mlir-opt prints a pipeline on functions."""
    irs = [
        "func.func private @x(i32)\n\n",
        "func.func @f() {\n  one\n}\n\n",
        "func.func @f() {\n  two\n}\n\n",
    ]
    made = split(
        "".join(f"// -----// IR Dump Before CSE (cse) //----- //\n{text}" for text in irs), tmp_path / "out"
    )
    assert texts(made) == irs
    assert [(dump.operation, dump.symbol, dump.changed) for dump in made.dumps] == [
        ("func.func", "x", None),
        ("func.func", "f", True),
        ("func.func", "f", None),
    ]


def test_llvms_dumps_show_what_their_pass_left(tmp_path: Path) -> None:
    text = "define void @add() {{\n  {}\n}}\n"
    stream = "".join(
        f"; *** IR Dump After {name} on add ***\n{text.format(line)}Running pass: X on add (1 instructions)\n"
        for name, line in (("A", "one"), ("B", "one, !dbg !7"), ("C", "two"))
    )
    made = split(stream, tmp_path / "out")
    assert [(dump.stage, dump.changed, dump.against) for dump in made.dumps] == [
        ("llvm", None, None),
        ("llvm", False, 0),
        ("llvm", True, 1),
    ]
    assert (made.folder / made.output).read_text().count("Running pass") == 3


def test_stages_follow_from_the_ir(tmp_path: Path) -> None:
    parts = [
        ("Inliner", module(LOAD)),
        ("ToGPU", module(LOAD)),
        ("Coalesce", module(LOAD, head=HEAD)),
        ("ToLLVM", module(LOAD, head=HEAD)),
        ("CSE", module("llvm.return", head=HEAD).replace("tt.func public", "llvm.func")),
    ]
    made = split("".join(banner(name, name) + text for name, text in parts), tmp_path / "out")
    assert [dump.stage for dump in made.dumps] == ["ttir", "ttgir", "ttgir", "llir", "llir"]
    assert made.kernels[0].target == "cuda:90"


def test_times_are_those_of_the_report_that_follows(tmp_path: Path) -> None:
    names = ["InlinerPass", "CanonicalizerPass", "CanonicalizerPass", "CSEPass"]
    made = split("".join(banner(name, "x") + module(LOAD) for name in names) + NEW, tmp_path / "out")
    assert made.dumps[0].seconds == 0.1002
    assert {dump.seconds for dump in made.dumps[1:3]} == {0.0010, 0.0004}
    assert made.dumps[3].seconds == 0.0003


# ---------------------------------------------------------------- kernels


def kernel_stream(name: str, target: str = "cuda:90") -> list[str]:
    """The dumps of one kernel."""
    head = HEAD.replace("cuda:90", target)
    return [
        banner("Inliner", "inline") + module(LOAD, kernel=name),
        banner("Coalesce", "coalesce") + module(LOAD, kernel=name, head=head),
        banner("CSE", "cse") + module(SUM, kernel=name, head=head),
    ]


def test_kernels_one_after_the_other(tmp_path: Path) -> None:
    made = split("".join(kernel_stream("add") + kernel_stream("mul", "hip:gfx942")), tmp_path / "out")
    assert [(one.name, one.target) for one in made.kernels] == [("add", "cuda:90"), ("mul", "hip:gfx942")]
    assert [dump.number for dump in made.of("mul")] == [0, 1, 2]


def test_a_kernel_that_is_compiled_again_is_another_one(tmp_path: Path) -> None:
    made = split("".join(kernel_stream("add") * 2), tmp_path / "out")
    assert [(one.name, one.function) for one in made.kernels] == [("add", "add"), ("add-2", "add")]
    assert len(made.of("add")) == len(made.of("add-2")) == 3


def test_attributes_that_a_pass_gives_the_module_begin_no_other_kernel(tmp_path: Path) -> None:
    more = HEAD.replace("{", "{ttg.shared = 0 : i32, ", 1)
    heads = ("module {", HEAD, more, more)
    stream = "".join(
        banner(name, name) + module(LOAD, head=head) for name, head in zip("abcd", heads, strict=True)
    )
    made = split(stream, tmp_path / "out")
    assert len(made.kernels) == 1


def test_pipelines_of_two_threads(tmp_path: Path) -> None:
    mixed = [part for pair in zip(kernel_stream("add"), kernel_stream("mul"), strict=True) for part in pair]
    made = split("".join(mixed), tmp_path / "out")
    assert [dump.argument for dump in made.of("mul")] == ["inline", "coalesce", "cse"]
    assert [dump.changed for dump in made.of("add")] == [True, True, None]


def test_two_threads_compile_one_kernel_for_two_targets(tmp_path: Path) -> None:
    one, other = kernel_stream("add"), kernel_stream("add", "hip:gfx942")
    made = split("".join([*one[:2], *other[:2], one[2], other[2]]), tmp_path / "out")
    assert [[dump.argument for dump in made.of(kernel.name)] for kernel in made.kernels] == [
        ["inline", "coalesce", "cse"]
    ] * 2
    assert [kernel.target for kernel in made.kernels] == ["cuda:90", "hip:gfx942"]


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (['"foo<bar, 3>"', "k" * 300], ["foo-bar-3", "k" * 100]),
        (['"' + "核" * 120 + '"', '"../../x"'], ["kernel", "x"]),  # 360 bytes
        (["Add", "add"], ["Add", "add-2"]),  # one folder, where case does not count
        (["index.json", "output.log", "reproducers"], ["index.json-2", "output.log-2", "reproducers-2"]),
    ],
)
def test_names_that_files_cannot_have(names: list[str], folders: list[str], tmp_path: Path) -> None:
    stream = "".join(banner("é" * 200, "é" * 200) + module(LOAD, kernel=name) for name in names)
    made = split(stream, tmp_path / "out")
    assert [kernel.name for kernel in made.kernels] == folders
    assert [kernel.function for kernel in made.kernels] == [name.strip('"') for name in names]
    assert b"".join(made.pieces()).decode() == stream
    assert indexes.read(made.folder) == made


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    stream = banner("InlinerPass", "inline") + module(LOAD) + _report("InlinerPass")
    (dump,) = split(stream.replace("\n", "\r\n"), tmp_path / "out").dumps
    assert dump.seconds == 0.5


# ---------------------------------------------------------------- output and failures


def test_output_between_dumps_is_kept_apart_and_shown(tmp_path: Path) -> None:
    shown: list[bytes] = []
    splitter = Splitter(tmp_path, shown.append)
    splitter.feed(
        f"start\n{banner('A', 'a')}{module(LOAD)}50 %{banner('B', 'b')}{module(SUM)}{NEW}end\n".encode()
    )
    made = splitter.close()
    assert texts(made) == [module(LOAD), module(SUM)]
    assert b"".join(shown) == b"start\n50 %end\n"
    assert (tmp_path / made.output).read_bytes().startswith(b"start\n50 %===")


def test_output_is_shown_as_soon_as_it_is_known_to_be_output(tmp_path: Path) -> None:
    shown: list[bytes] = []
    splitter = Splitter(tmp_path, shown.append)
    splitter.feed(f"{banner('A', 'a')}{module(LOAD)}50 %".encode())
    assert not shown
    splitter.idle()
    assert b"".join(shown) == b"50 %"
    splitter.feed(b" done\n")
    splitter.close()
    assert b"".join(shown) == b"50 % done\n"


def test_half_a_dump_is_not_shown(tmp_path: Path) -> None:
    shown: list[bytes] = []
    splitter = Splitter(tmp_path, shown.append)
    splitter.feed(f"{banner('A', 'a')}module {{\n  %0 = tt.lo".encode())
    splitter.idle()
    splitter.feed(b"ad\n}\n\n\n")
    splitter.close()
    assert not shown


def test_a_pass_that_failed_is_named_with_what_the_compiler_said(tmp_path: Path) -> None:
    said = "add.py:6:4: error: 'tt.load' op is wrong\n"
    stream = (
        banner("CSE", "cse") + module(LOAD) + said + banner("CSE Failed", "cse", when="After") + module(LOAD)
    )
    (kernel,) = split(stream, tmp_path / "out").kernels
    assert kernel.failed == "CSE"
    assert kernel.error == said.strip()


def test_a_crash_names_the_pass_that_ran(tmp_path: Path) -> None:
    said = "python: /x/Pipeliner.cpp:12: void f(): Assertion `x' failed.\nFatal Python error: Aborted\n"
    made = split(banner("A", "a") + module(LOAD) + banner("B", "b") + module(SUM) + said, tmp_path / "out")
    assert (made.kernels[0].failed, made.kernels[0].error) == ("B", said.strip())
    assert texts(made)[1] == module(SUM)


@pytest.mark.parametrize("message", ["planted: no such layout\n", ""])
def test_the_message_before_unreachable_is_kept(tmp_path: Path, message: str) -> None:
    said = f"{message}UNREACHABLE executed at /x/Prefetch.cpp:447!\nStack dump:\n"
    made = split(banner("A", "a") + module(LOAD) + said, tmp_path / "out")
    assert made.kernels[0].error == said.strip()
    assert texts(made)[0] == module(LOAD)


def test_the_message_before_unreachable_ends_a_dump_that_is_cut(tmp_path: Path) -> None:
    said = "planted: no such layout\nUNREACHABLE executed at /x/Prefetch.cpp:447!\n"
    ir = "module {\n  tt.func public @add() {\n    %0 = tt.load\n"
    made = split(banner("A", "a") + ir + said, tmp_path / "out")
    assert (texts(made)[0], made.kernels[0].error) == (ir, said.strip())


def test_a_dump_that_is_cut_is_the_last_thing_that_is_known(tmp_path: Path) -> None:
    said = "Stack dump:\n0. Program arguments: python\n"
    ir = "module {\n  tt.func public @add() {\n    %0 = tt.load\n"
    made = split(banner("A", "a") + module(LOAD) + banner("B", "b") + ir + said, tmp_path / "out")
    assert [dump.whole for dump in made.dumps] == [True, False]
    assert texts(made)[1] == ir
    assert (made.kernels[0].failed, made.kernels[0].error) == ("B", said.strip())
    assert made.dumps[0].changed is None


def test_a_crash_in_llvm_names_the_pass_that_llvm_logged(tmp_path: Path) -> None:
    stream = (
        "; *** IR Dump After A on add ***\ndefine void @add() {\n  ret void\n}\n"
        "Running pass: B on add (1 instructions)\nLLVM ERROR: cannot select\n"
    )
    (kernel,) = split(stream, tmp_path / "out").kernels
    assert (kernel.failed, kernel.error) == ("B", "LLVM ERROR: cannot select")


def test_a_program_that_dies_without_a_word(tmp_path: Path) -> None:
    made = split(banner("A", "a") + module(LOAD), tmp_path / "out", died="signal 11")
    assert (made.kernels[0].failed, made.kernels[0].error) == ("A", "signal 11")


def test_a_pass_whose_time_is_known_did_not_fail(tmp_path: Path) -> None:
    """What comes after MLIR's report is LLVM's, or an assembler's: ptxas, for one."""
    stream = banner("InlinerPass", "inline") + module(LOAD) + _report("InlinerPass")
    said = "LLVM ERROR: cannot select\n"
    kernels = [
        split(stream + said, tmp_path / "llvm").kernels[0],
        split(stream, tmp_path / "killed", died="signal 9").kernels[0],
        split(stream.replace(_report("InlinerPass"), said + _report("InlinerPass")), tmp_path / "b").kernels[
            0
        ],
        split(stream + "RuntimeError: PassManager::run failed\n", tmp_path / "c").kernels[0],
        split(stream + banner("B", "b") + module(LOAD) + said, tmp_path / "d").kernels[0],
    ]
    assert [one.failed for one in kernels] == [
        "after InlinerPass",
        "after InlinerPass",
        "InlinerPass",
        "InlinerPass",
        "B",
    ]


def test_what_a_finished_program_says_is_no_failure(tmp_path: Path) -> None:
    stream = (
        f"{banner('A', 'a')}{module(LOAD)}Traceback (most recent call last):\nValueError: x.py: error: bad\n"
    )
    assert split(stream, tmp_path / "out").kernels[0].failed == ""


def test_a_reproducer_gets_a_file(tmp_path: Path) -> None:
    reproducer = (
        "#x = 1\nmodule {\n  a\n}\n\n{-#\n  external_resources: {\n    mlir_reproducer: {\n    }\n  }\n#-}"
    )
    said = "add.py:1:1: note: Pipeline failed while executing [`CSE` on 'builtin.module' operation]\n"
    stream = f"{banner('CSE', 'cse')}{module(LOAD)}add.py:1:1: error: bad\n{reproducer}\n{said}"
    made = split(stream, tmp_path / "out")
    assert made.reproducers == ("add/reproducer.mlir",)
    assert (made.folder / made.reproducers[0]).read_text() == f"{reproducer}\n"
    assert made.kernels[0].failed == "CSE"
    assert made.kernels[0].error == f"add.py:1:1: error: bad\n{said}".strip()


def test_a_stream_without_dumps_is_all_output(tmp_path: Path) -> None:
    made = split("hello\n", tmp_path / "out")
    assert (made.dumps, made.kernels) == ((), ())
    assert (made.folder / made.output).read_text() == "hello\n"


def test_streams_pack_well(tmp_path: Path) -> None:
    """What is written for passes that change nothing is a name, not a copy."""
    stream = "".join(banner(f"P{number}", f"p{number}") + module(*[LOAD] * 200) for number in range(50))
    made = split(stream, tmp_path / "out")
    files = {made.path(dump).stat().st_ino for dump in made.dumps}
    assert len(files) == 1
    assert len(gzip.compress(stream.encode())) < len(stream)
