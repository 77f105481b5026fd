from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler import report
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.inspect import show
from tritonsmith.inspect import show as show_stage
from tritonsmith.inspect.show import SourceLine

TTGIR = """#loc = loc("/k.py":8:1)
#loc5 = loc("x_ptr"(#loc))
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func private @helper(%x: f32 {a = 1 : i32} loc("x"(#loc))) -> f32 attributes {noinline = true} {
    %0 = arith.mulf %x, %x : f32 loc(#loc7)
    tt.return %0 : f32 loc(#loc2)
  } loc(#loc)
  tt.func public @add(%x_ptr: !tt.ptr<f32> loc("x_ptr"(#loc))) attributes {noinline = false} {
    %c = arith.constant {value = "}"} 4 : i32 loc(#loc1)
    scf.for %i = %a to %b {
      %2 = tt.load %x_ptr : !tt.ptr<f32> loc(#loc6)
    } loc(#loc2)
    tt.return loc("/other.py":3:2)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("/k.py":9:15)
#loc3 = loc("/k.py":12:7)
#loc4 = loc("mask"(#loc2))
#loc6 = loc(callsite(#loc3 at #loc2))
#loc7 = loc(fused<"x">[#loc4, #loc3])
"""
LLIR = """define void @add(ptr %0) !dbg !4 {
  %7 = call i32 @tid(), !dbg !12
  ret void, !dbg !13
}
define internal float @"helper"(float %0) {
  ret float %0
}
!1 = !DIFile(filename: "k.py", directory: "/")
!4 = distinct !DISubprogram(name: "add", scope: !1, file: !1, line: 8)
!9 = distinct !DILexicalBlockFile(scope: !4, file: !1, discriminator: 0)
!12 = !DILocation(line: 9, column: 15, scope: !9)
!13 = !DILocation(line: 0, scope: !4)
"""
PTX = """.version 8.4
.visible .entry add(
	.param .u64 add_param_0
)
{
	.loc	1 9 15
	mov.u32 	%r1, %tid.x;
$L__BB0_2:
	.loc	1 12 7
	{ add.f32 	%f1, %f2, %f3; }
	ret;
}
.func (.param .b32 r) helper()
{
	ret;
}
	.file	1 "/k.py"
"""
AMDGCN = """	.text
add:                                    ; @add
	.file	1 "/" "k.py"
	.loc	1 9 15 prologue_end
	s_load_dword s2, s[0:1], 0x0
.LBB0_1:
	.loc	1 12 7
	s_endpgm
.Lfunc_end0:
	.size	add, .Lfunc_end0-add
"""
SASS = """//--------------------- .text.helper --------------------------
        /*0000*/                   EXIT ;
//--------------------- .text.add --------------------------
add:
	//## File "/k.py", line 9
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/k.py", line 12
        /*0010*/                   EXIT ;
//--------------------- SYMBOLS --------------------------
"""
GCNASM = """k.hsaco:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001600 <add>:
; add():
; /k.py:9
	s_load_dwordx2 s[2:3], s[0:1], 0x0                         // 000000001600: C0060080 00000000
; /k.py:12
	s_branch 56                                                // 00000000161C: BF820038 <add+0x100>

0000000000001700 <helper>:
	s_endpgm
"""
ALL = {"ttgir": TTGIR, "llir": LLIR, "ptx": PTX, "amdgcn": AMDGCN, "sass": SASS, "gcnasm": GCNASM}


@pytest.mark.parametrize("stage", ALL)
def test_lines_of_python(stage: str) -> None:
    text = ALL[stage]
    found = dict(zip(text.splitlines(), show.origins(text, stage), strict=True))
    known: dict[str, dict[str, SourceLine | None]] = {
        "ttgir": {
            "%0 =": SourceLine("/k.py", 9),
            "%2 =": SourceLine("/k.py", 12),
            "%c =": None,
            "tt.return l": SourceLine("/other.py", 3),
        },
        "llir": {"%7": SourceLine("/k.py", 9), "define void": SourceLine("/k.py", 8), "ret void": None},
        "ptx": {
            "mov.u32": SourceLine("/k.py", 9),
            "{ add": SourceLine("/k.py", 12),
            "$L": None,
            "ret;": SourceLine("/k.py", 12),
        },
        "amdgcn": {"s_load": SourceLine("/k.py", 9), "s_endpgm": SourceLine("/k.py", 12), ".size": None},
        "sass": {
            "/*0000*/                   LDC": SourceLine("/k.py", 9),
            "/*0010*/": SourceLine("/k.py", 12),
        },
        "gcnasm": {"s_load": SourceLine("/k.py", 9), "s_branch": SourceLine("/k.py", 12), "; add": None},
    }
    for begin, line in known[stage].items():
        seen = [place for text, place in found.items() if text.strip().startswith(begin)]
        assert line in seen, (begin, seen)


def test_the_source_stands_where_another_line_begins(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("\n" * 8 + "  x = tid()\n")
    mixed = show_stage.with_source(LLIR.replace('directory: "/"', f'directory: "{tmp_path}"'), "llir")
    assert "\n  ; k.py:9: x = tid()\n  %7 = call" in mixed
    assert "; k.py:8: " in mixed
    assert "(file not found)" in show_stage.with_source(PTX, "ptx")


ESCAPED = {
    "ttgir": r"\C3\A9",
    "llir": r"\C3\A9",
    "ptx": r"\303\251",
    "amdgcn": r"\303\251",
    "sass": r"\303\251",
    "gcnasm": "é",
}


@pytest.mark.parametrize("stage", ALL)
def test_the_source_is_found_in_a_folder_beyond_ascii(stage: str, tmp_path: Path) -> None:
    folder = tmp_path / "mein Code é"
    folder.mkdir()
    (folder / "k.py").write_text("\n" * 8 + "x = tid()\n")
    written = f"{tmp_path}/mein Code {ESCAPED[stage]}"
    text = ALL[stage].replace('"/" "k.py"', f'"{written}" "k.py"').replace("/k.py", f"{written}/k.py")
    mixed = show_stage.with_source(text.replace('directory: "/"', f'directory: "{written}"'), stage)
    assert " k.py:9: x = tid()" in mixed


def test_rings_of_locations_end() -> None:
    text = "#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\nx loc(#loc1)\n"
    assert show.origins(text, "ttir")[2] is None


@pytest.mark.parametrize(
    ("stage", "first", "last"),
    [
        ("ttgir", "tt.func public @add", "} loc(#loc)"),
        ("llir", "define void @add", "}"),
        ("ptx", ".visible .entry add(", "}"),
        ("amdgcn", "add:", "s_endpgm"),
        ("sass", "//--------------------- .text.add", "EXIT ;"),
        ("gcnasm", "0000000000001600 <add>:", "s_branch 56"),
    ],
)
def test_one_function(stage: str, first: str, last: str) -> None:
    lines = show_stage.function(ALL[stage], stage, "add").strip().splitlines()
    assert lines[0].strip().startswith(first)
    assert last in lines[-1]
    assert not any("helper" in line for line in lines)


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no function 'ad'") as caught:
        show_stage.function(TTGIR, "ttgir", "ad")
    assert "did you mean 'add'?" in caught.value.hints


@pytest.mark.parametrize("stage", ALL)
def test_colours_change_nothing_else(stage: str) -> None:
    assert (
        show_stage.highlighted(ALL[stage], stage).plain.expandtabs().rstrip()
        == ALL[stage].expandtabs().rstrip()
    )


def made(folder: Path) -> Manifest:
    points = []
    for target, status in (("cuda:90:32", "ok"), ("cuda:80:32", "crashed")):
        name = target.replace(":", "-")
        stages = {}
        if status == "ok":
            (folder / name).mkdir(parents=True)
            for stage, text in (("ttgir", TTGIR), ("source", TTGIR), ("cubin", "ELF"), ("sass", SASS)):
                path = folder / name / f"add.{stage}"
                path.write_text(text)
                stages[stage] = Stage(str(path.relative_to(folder)), len(text), "")
        error = "" if status == "ok" else "the compiler died: SIGABRT"
        log = "" if status == "ok" else "Assertion `false' failed.\n"
        points.append(Point(name, target, {}, {}, {}, {}, status, 0.5, stages, {}, error, log))  # type: ignore[arg-type]
    return Manifest(folder, "add", "/k.py", "", "9.9.9", "", "3.12.1", "", tuple(points))


def test_points_and_stages_are_chosen(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    point = show_stage.choose(manifest, "cuda:90:32")
    assert show_stage.choose(manifest, "cuda-90-32") == point
    assert show_stage.stage_text(manifest, point, "ttgir") == TTGIR
    for target in ("cuda:90", "h100", "sm_90"):
        assert show_stage.choose(manifest, target) == point
    with pytest.raises(UsageError, match="this folder has 2 points"):
        show_stage.choose(manifest, "")
    with pytest.raises(UsageError, match="no point 'cuda-90'"):
        show_stage.choose(manifest, "cuda-90")
    with pytest.raises(UsageError, match="no stage 'amdgcn'"):
        show_stage.stage_text(manifest, point, "amdgcn")
    with pytest.raises(UsageError, match="cubin is a binary stage") as caught:
        show_stage.stage_text(manifest, point, "cubin")
    assert caught.value.hints == ("to show its disassembly: --stage sass",)
    with pytest.raises(FactError, match="did not compile: crashed"):
        show_stage.stage_text(manifest, show_stage.choose(manifest, "cuda-80-32"), "ttgir")


def test_a_target_of_several_points_lists_them(tmp_path: Path) -> None:
    (point, other) = made(tmp_path).points
    swept = replace(
        made(tmp_path / "swept"), points=(point, replace(point, id="cuda-90-32,num_warps=8"), other)
    )
    with pytest.raises(UsageError, match="this folder has 2 points of target 'h100'") as caught:
        show_stage.choose(swept, "h100")
    assert caught.value.hints == (
        "choose one: --point cuda-90-32",
        "choose one: --point cuda-90-32,num_warps=8",
    )


def test_the_table_and_the_failures(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    (table,) = report.table(manifest)
    assert [str(column.head) for column in table.columns] == [
        "point",
        "status",
        "ttgir",
        "cubin",
        "sass",
        "time",
    ]
    (failure,) = report.failures(manifest)
    assert failure.splitlines() == [
        "cuda-80-32: crashed",
        "  the compiler died: SIGABRT",
        "  Assertion `false' failed.",
    ]
    assert report.as_json(manifest, ("a note",))["notes"] == ["a note"]


# --- a link to Compiler Explorer


def opened(url: str) -> dict[str, Any]:
    """What the site makes of a link."""
    head, _, state = url.rpartition("/")
    assert head == "https://godbolt.org/clientstate"
    packed = base64.urlsafe_b64decode(state)
    assert packed[0] & 0x0F == 8  # how the site sees that it is compressed
    (session,) = json.loads(zlib.decompress(packed))["sessions"]
    assert session["id"] == 1
    return dict(session)


@pytest.mark.parametrize(
    ("text", "stage", "target", "language", "compilers"),
    [
        (TTGIR, "ttgir", "cuda:90:32", "mlir", []),
        (LLIR, "llir", "cuda:90:32", "llvm", [{"id": "llctrunk", "options": "-O3 -mcpu=sm_90"}]),
        (LLIR, "llir", "hip:gfx942:64", "llvm", [{"id": "llctrunk", "options": "-O3 -mcpu=gfx942"}]),
        (
            f".target sm_90a\n{PTX}",
            "ptx",
            "cuda:90:32",
            "ptx",
            [{"id": "ptxasnvcc_131", "options": "-arch=sm_90a"}],
        ),
    ],
)
def test_a_link_opens_the_stage(
    text: str, stage: str, target: str, language: str, compilers: list[dict[str, str]]
) -> None:
    session = opened(show_stage.link(text, stage, target))
    assert (session["language"], session["compilers"]) == (language, compilers)
    assert session["source"] == show_stage.without_locations(text, stage)


def test_a_link_names_no_file_of_the_user() -> None:
    ttgir = opened(show_stage.link(TTGIR, "ttgir", "cuda:90:32"))["source"]
    assert "loc" not in ttgir
    assert ".py" not in ttgir
    assert "  tt.func public @add(%x_ptr: !tt.ptr<f32>) attributes {noinline = false} {\n" in ttgir
    assert ttgir.count("\n") == TTGIR.count("\n") - 8
    llir = opened(show_stage.link(LLIR, "llir", "cuda:90:32"))["source"]
    assert "!" not in llir
    assert "  %7 = call i32 @tid()\n  ret void\n}\n" in llir
    ptx = opened(show_stage.link(PTX, "ptx", "cuda:90:32"))["source"]
    assert ".loc" not in ptx
    assert ".file" not in ptx
    assert "mov.u32" in ptx


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('x loc(callsite("a(b"("/f.py":1:2) at callsite("b"("/f.py":3:4) at unknown))) y', "x y"),
        ("x location(1) my_loc(2)", "x location(1) my_loc(2)"),
        (
            'x loc(callsite("a"("/f.py":1:2) at '
            + 'callsite("b"("/f.py":3:4) at ' * 5
            + "unknown"
            + ")" * 7
            + " y",
            "x y",
        ),
        ('#di_file = #llvm.di_file<"f.py" in "/home/me">\n#loc1 = loc("/f.py":1:2)\nx loc(#loc1)', "x"),
    ],
)
def test_locations_within_locations(text: str, left: str) -> None:
    assert show_stage.without_locations(text, "ttir") == left


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("ttgir", " " * 100_000),
        ("ttgir", "loc(" * 50_000),
        ("ptx", "\n" * 100_000),
        ("ptx", ".section .debug_info {\n" * 50_000),
        ("llir", "\n" * 100_000),
        ("llir", "!0 = !DIFile(x)\n" + "".join(f"!{one + 1} = !{{!{one}}}\n" for one in range(20_000))),
    ],
    ids=["spaces", "open locations", "lines", "open sections", "lines of LLVM", "a chain"],
)
def test_texts_that_could_take_minutes(stage: str, text: str) -> None:
    left = show_stage.without_locations(text, stage)
    assert left == ("" if "!" in text else text)


def test_metadata_that_is_no_debug_information_stays() -> None:
    llir = (
        "define void @f() !dbg !4 {\n  ret void, !dbg !5, !nosanitize !2\n}\n"
        '!llvm.module.flags = !{!2}\n!llvm.dbg.cu = !{!3}\n!2 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'
        "!3 = distinct !DICompileUnit(file: !6)\n!4 = distinct !DISubprogram(type: !7)\n"
        "!5 = !DILocation(scope: !4)\n"
        '!6 = !DIFile(filename: "k.py")\n!7 = !DISubroutineType(types: !8)\n!8 = !{!9}\n!9 = !DIBasicType()\n'
    )
    assert show_stage.without_locations(llir, "llir") == (
        "define void @f() {\n  ret void, !nosanitize !2\n}\n"
        '!llvm.module.flags = !{!2}\n!2 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'
    )


def test_a_text_that_is_too_long_for_a_link() -> None:
    text = "\n".join(f"%{hashlib.sha256(bytes([one])).hexdigest()} = tt.load" for one in range(250))
    with pytest.raises(FactError, match=r"too long for a link") as failure:
        show_stage.link(text, "ttir", "cuda:90:32")
    assert "the site takes 8192" in str(failure.value.why)
    assert "--function NAME" in failure.value.hints[0]


def test_a_stage_that_the_site_has_no_language_for() -> None:
    with pytest.raises(UsageError, match="no language for the stage 'sass'") as failure:
        show_stage.link("/*0000*/ MOV", "sass", "cuda:90:32")
    assert "llir" in failure.value.hints[0]
