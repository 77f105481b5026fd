"""The Ninja file that compiles sources without their precompiled header."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonsmith.build.triton import check_includes

COMMAND = (
    "/usr/bin/clang++ -I/src/include -g -Winvalid-pch -Xclang -include-pch -Xclang /b/x.pch -Xclang -include"
    " -Xclang /b/x.hxx -Xclang -fdebug-compilation-dir=. -DPRICE='\"$5\"' -o lib/A.cpp.o -c '/a src/A.cpp'"
)
DATABASE = [
    {"directory": "/b", "file": "/a src/A.cpp", "command": COMMAND},
    {"directory": "/b", "file": "/a src/A.cpp", "command": "second -c '/a src/A.cpp'"},
    {"directory": "/b", "file": "/src/Other.cpp", "command": "clang++ -c /src/Other.cpp"},
]


def test_the_header_and_the_outputs_go_and_all_else_stays() -> None:
    text = check_includes.render(DATABASE, ["/a src/A.cpp", "/src/NotCompiled.cpp"])
    kept = "-I/src/include -g -Winvalid-pch -Xclang -fdebug-compilation-dir=. '-DPRICE=\"$$5\"'"
    assert text.splitlines()[3:] == [
        "build /a$ src/A.cpp.checked: check",
        "  folder = /b",
        f"  argv = /usr/bin/clang++ {kept} '/a src/A.cpp' -fsyntax-only",
        "  source = /a src/A.cpp",
    ]


def test_a_header_is_compiled_by_itself_as_a_source_is_that_includes_it() -> None:
    text = check_includes.render(DATABASE, ["/src/Other.cpp"], [("/src/B.h", "/src/Other.cpp")])
    assert [line for line in text.splitlines() if line.startswith(("build", "  argv"))] == [
        "build /src/Other.cpp.checked: check",
        "  argv = clang++ /src/Other.cpp -fsyntax-only",
        "build /src/B.h.checked: check",
        "  argv = clang++ -Wno-pragma-once-outside-header -x c++ /src/B.h -fsyntax-only",
    ]


def test_the_command_line_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, made = tmp_path / "compile_commands.json", tmp_path / "build.ninja"
    database.write_text(json.dumps(DATABASE), encoding="utf-8")
    assert check_includes.main(["--output", str(made), str(database), "/src/Other.cpp", "/src/B.cpp"]) == 0
    assert "argv = clang++ /src/Other.cpp -fsyntax-only" in made.read_text(encoding="utf-8")
    assert capsys.readouterr().out == "1 of 2 files are compiled by this build\n"
