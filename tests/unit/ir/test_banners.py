"""Banners of each kind, as the wheels 3.0 to 3.9 and LLVM print them."""

from __future__ import annotations

import pytest

from tritonsmith.ir import banners

ZEROS = "zeros____0cconstexpr_(constexpr_64_, constexpr_64_)__1cconstexpr_fp32_"  # Triton 3.0
FUNCTION = "'tt.func' operation"
MODULE = "('builtin.module' operation)"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (  # Triton 3.9.0
            f"// -----// IR Dump Before InlinerPass: inline{{max-iterations=4 }} {MODULE} //----- //",
            ("InlinerPass", "inline", "builtin.module", "", "before"),
        ),
        (  # Triton 3.0.0
            f"// -----// IR Dump Before Canonicalizer (canonicalize) ({FUNCTION}: @{ZEROS}) //----- //",
            (
                "Canonicalizer",
                "canonicalize",
                "tt.func",
                ZEROS,
                "before",
            ),
        ),
        ("// -----// IR Dump Before CSE (cse) //----- //", ("CSE", "cse", "", "", "before")),  # mlir-opt-19
        (
            f"// -----// IR Dump After CSEPass Failed: cse {MODULE} //----- //",
            ("CSEPass", "cse", "builtin.module", "", "failed"),
        ),
        (
            f"// -----// IR Dump After Canonicalizer Failed (canonicalize) {MODULE} //----- //",
            ("Canonicalizer", "canonicalize", "builtin.module", "", "failed"),
        ),
        (
            "; *** IR Dump After InstCombinePass on add ***",
            ("InstCombinePass", "", "function", "add", "after"),
        ),
        ("; *** IR Dump After GlobalOptPass on [module] ***", ("GlobalOptPass", "", "module", "", "after")),
        ("; *** IR Dump After InlinerPass on (add) ***", ("InlinerPass", "", "scc", "add", "after")),
        (
            "; *** IR Dump After LICMPass on loop %<unnamed loop> in function add ***",
            ("LICMPass", "", "loop", "add", "after"),
        ),
        (
            "*** IR Dump After Global Value Numbering (gvn) ***",
            ("Global Value Numbering", "gvn", "", "", "after"),
        ),
        (
            "# *** IR Dump After Slot index numbering (slotindexes) ***:",
            ("Slot index numbering", "slotindexes", "machine-function", "", "after"),
        ),
        ("// -----// NVPTX Dump //----- //", ("ptx", "", "", "", "after")),
        ("// -----// AMDGCN Dump //----- //", ("amdgcn", "", "", "", "after")),
    ],
)
def test_each_banner_is_read(line: str, found: tuple[str, ...]) -> None:
    read = banners.parse(f"{line}\n".encode())
    assert read is not None
    begin, one = read
    assert begin == 0
    assert (one.name, one.argument, one.operation, one.symbol, one.when) == found


def test_options_stay_in_the_pipeline_form() -> None:
    read = banners.parse(
        b"// -----// IR Dump Before TritonGPUPipeline: tritongpu-pipeline{num-stages=3} "
        b"('builtin.module' operation) //----- //\n"
    )
    assert read is not None
    assert read[1].pipeline == "tritongpu-pipeline{num-stages=3}"


def test_what_a_pass_prints_of_itself_is_told_apart() -> None:
    read = banners.parse(b"// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\n")
    assert read is not None
    assert (read[1].name, read[1].inside, read[1].when) == ("SoftwarePipeliner: LowerLoops", True, "after")


def test_output_before_a_banner_is_not_its() -> None:
    read = banners.parse(b"50 %// -----// IR Dump Before CSE (cse) ('builtin.module' operation) //----- //\n")
    assert read is not None
    assert read[0] == len("50 %")


@pytest.mark.parametrize(
    "line", ["IR Dump Before", "// -----// IR Dump Before", "*** IR Dump", "Dump ", "// Dump //----- //"]
)
def test_what_looks_like_one_is_none(line: str) -> None:
    assert banners.parse(f"{line}\n".encode()) is None


@pytest.mark.parametrize(
    ("kind", "ir", "rest"),
    [
        ("mlir", '#loc = loc("a")\nmodule {\n  x\n} loc(#loc)\n#loc1 = loc("b")\n\n\n', "hello\n"),
        ("mlir", "module {\n  x\n}\n\n\n", '{"json": 1}\n}\n'),
        ("mlir", '"builtin.module"() ({\n  x\n}) : () -> ()\n\n\n', "hello\n"),
        ("mlir", "func.func private @f(i32)\n", "hello\n"),
        ("ll", "; Function Attrs: nounwind\ndefine void @f() {\n  ret void\n}\n", "Running pass: X on f\n"),
        (
            "ll",
            "; ModuleID = 'x'\n\ndefine void @f() {\n  ret\n}\n\ndeclare void @g()\n\n!0 = !{}\n",
            "hello\n",
        ),
        (
            "ll",
            "\n; Preheader:\n  %1 = add\n\n; Loop:\n5:    ; preds = %4\n  br label %5\n",
            "Running pass: X\n",
        ),
        ("ll", "\nPrinting <null> Function\n", "hello\n"),
        (
            "mir",
            "# Machine code for function f: IsSSA\n\nbb.0:\n  RET\n\n# End machine code for function f.\n\n",
            "hi\n",
        ),
        (
            "ptx",
            ".version 8.4\n.entry f(\n)\n{\n\tret;\n$L__func:\n}\n\t.section\t.debug_macinfo\t{\t}\n\n",
            "hello\n",
        ),
        (
            "amdgcn",
            "\t.text\nf:    ; @f\n.Lfunc:\n\ts_endpgm\n---\namdhsa.kernels:\n  - .a: 1\n...\n",
            "done\n",
        ),
    ],
)
def test_the_end_of_each_language_is_found(kind: str, ir: str, rest: str) -> None:
    assert banners.end(kind, (ir + rest).encode()) == len(ir)
    assert banners.end(kind, ir.encode()) == len(ir)


@pytest.mark.parametrize(
    ("kind", "ir"), [("mlir", "module {\n  %0 = tt.l"), ("ll", "define void @f() {\n  re")]
)
def test_what_is_cut_has_no_end(kind: str, ir: str) -> None:
    assert banners.end(kind, ir.encode()) is None


def test_the_compilers_last_words_are_not_ir() -> None:
    ir = b"module {\n  %0 = tt.load\n"
    assert banners.crash_offset(ir + b"python: Foo.cpp:12: void f(): Assertion `x' failed.\n") == len(ir)
    assert banners.crash_offset(ir) == len(ir)


@pytest.mark.parametrize("kind", ["mlir", "ll", "mir", "ptx", "amdgcn"])
@pytest.mark.parametrize(
    "piece", [b"#\n", b"!\n", b"\n", b"define \n", b"{", b" loc(", b"Dump ", b";", b": error: "]
)
def test_long_input_of_one_kind_is_no_trap(kind: str, piece: bytes) -> None:
    data = piece * 50_000  # a quadratic search would take minutes
    stop = banners.end(kind, data)
    assert stop is None or stop <= len(data)
    assert banners.crash_offset(data) <= len(data)


_BODIES = (
    ("mlir", b'#loc = loc("a.py":1:0)\nmodule {\n  tt.func @f() {\n  }\n}\n#loc1 = loc("a.py":2:0)\n'),
    ("mlir", b"module {\n}\n\n\n"),
    ("mlir", b"tt.func @f()\n"),
    ("ll", b'; ModuleID = "m"\n\ndefine void @f() {\n  ret void\n}\n\n!0 = !{}\n'),
    ("ll", b"define void @f() {\nB:\n  ret void\n}\n"),
    ("ll", b"; Preheader:\nentry:\n  br label %b\n\n; Loop:\nb:\n  br label %b\n"),
    ("mir", b"# Machine code for function f: x\n\n# End machine code for function f.\n"),
    ("ptx", b".version 8.0\n.entry f()\n{\n\tret;\n}\n"),
)
_TAILS = (
    *(b"", b"\n", b"\n\n", b"Running pass: A on f\n", b"===---===\n", b"}\n", b"#loc2 = loc(1)\n"),
    *(b"define x {\n}\n", b"LABEL:\n", b"; x\n", b"!1 = !{}\n", b"declare void @g()\n", b"lower\n"),
    *(b"  indented\n", b"\nRunning pass: A\n"),
)


@pytest.mark.parametrize(("kind", "body"), _BODIES)
def test_ir_that_is_repeated_ends_where_it_ended(kind: str, body: bytes) -> None:
    sure = 0
    for before in _TAILS:
        stop = banners.end(kind, body + before)
        assert stop is not None
        known = (body + before)[:stop]
        for tail in _TAILS:
            if banners.ends_at(kind, known + tail, stop):
                assert banners.end(kind, known + tail) == stop, (before, tail)
                sure += bool(tail)
    assert sure or kind == "ptx" or body.startswith(b"; Preheader")
