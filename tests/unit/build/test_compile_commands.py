"""The link to one compilation database: what may lie in its place, and the merge itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.build import compile_commands
from tritonsmith.build.compile_commands import COMPILE_COMMANDS, database_link
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Link, Move, Plan, Run
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

Entry = dict[str, Any]


def entry(file: str, directory: str = "/build", **more: str) -> Entry:
    return {"directory": directory, "command": f"clang++ -c {file}", "file": file, **more}


@pytest.fixture
def env(tmp_path: Path) -> EnvDir:
    """An environment with a configured Triton."""
    env = Workspace(tmp_path / "workspace").env("dev")
    env.build.mkdir(parents=True)
    (env.build / COMPILE_COMMANDS).write_text(json.dumps([entry("/src/a.cpp")]), encoding="utf-8")
    return env


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout's root."""
    root = tmp_path / "triton"
    root.mkdir()
    return root


def planned(checkout: Path, env: EnvDir) -> Plan:
    return compile_commands.link_plan(database_link(checkout), env, (env.build / COMPILE_COMMANDS,))


def test_nothing_there(checkout: Path, env: EnvDir) -> None:
    assert database_link(checkout).state == "absent"
    merge, link = planned(checkout, env).steps
    assert isinstance(merge, Run)
    assert merge.argv[1:3] == ("-m", "tritonsmith.build.compile_commands")
    assert merge.argv[3:] == ("--output", str(env.path / COMPILE_COMMANDS), str(env.build / COMPILE_COMMANDS))
    assert link == Link(
        checkout / COMPILE_COMMANDS, env.path / COMPILE_COMMANDS, phase=compile_commands.PHASE
    )


@pytest.mark.parametrize("target", ["right", "elsewhere", "gone"])
def test_a_link_is_replaced_wherever_it_leads(checkout: Path, env: EnvDir, target: str) -> None:
    (checkout.parent / "elsewhere.json").touch()
    places = {"right": env.path / COMPILE_COMMANDS, "elsewhere": checkout.parent / "elsewhere.json"}
    (checkout / COMPILE_COMMANDS).symlink_to(places.get(target, Path("/nowhere")))
    assert database_link(checkout).state == "link"
    assert [type(step) for step in planned(checkout, env).steps] == [Run, Link]


def test_a_link_to_a_folder_is_a_link(checkout: Path) -> None:
    (checkout / COMPILE_COMMANDS).symlink_to(checkout)
    assert database_link(checkout).state == "link"


def test_a_plain_file_is_kept_under_a_free_name(checkout: Path, env: EnvDir) -> None:
    for name in ("", ".backup", ".backup1"):
        (checkout / f"{COMPILE_COMMANDS}{name}").touch()
    (checkout / f"{COMPILE_COMMANDS}.backup2").symlink_to("/nowhere")
    assert database_link(checkout).state == "file"
    _, move, link = planned(checkout, env).steps
    assert isinstance(move, Move)
    assert (move.source, move.dest) == (checkout / COMPILE_COMMANDS, checkout / f"{COMPILE_COMMANDS}.backup3")
    assert isinstance(link, Link)


def test_a_folder_is_refused(checkout: Path, env: EnvDir) -> None:
    (checkout / COMPILE_COMMANDS).mkdir()
    with pytest.raises(FactError, match="in the place of the link") as caught:
        planned(checkout, env)
    assert caught.value.where == str(checkout / COMPILE_COMMANDS)


def test_nothing_configured_yet(checkout: Path, env: EnvDir) -> None:
    with pytest.raises(FactError, match="does not exist yet") as caught:
        compile_commands.link_plan(database_link(checkout), env, ())
    assert "invoke build-triton" in str(caught.value)


def test_the_plan_does_what_it_says(checkout: Path, env: EnvDir, tmp_path: Path) -> None:
    (checkout / COMPILE_COMMANDS).write_text("my own\n", encoding="utf-8")
    llvm = tmp_path / "llvm" / COMPILE_COMMANDS
    llvm.parent.mkdir()
    llvm.write_text(json.dumps([entry("/llvm/b.cpp")]), encoding="utf-8")
    plan = compile_commands.link_plan(database_link(checkout), env, (env.build / COMPILE_COMMANDS, llvm))
    Runner(tmp_path / "log", PhaseProgress(live=False, silent=True)).run(plan)
    linked = checkout / COMPILE_COMMANDS
    assert linked.is_symlink()
    assert [row["file"] for row in json.loads(linked.read_text(encoding="utf-8"))] == [
        "/src/a.cpp",
        "/llvm/b.cpp",
    ]
    assert (checkout / f"{COMPILE_COMMANDS}.backup").read_text(encoding="utf-8") == "my own\n"


def test_where_a_file_occurs_twice_the_first_database_stands() -> None:
    triton = [entry("/src/a.cpp", output="triton"), entry("/llvm/shared.cpp", output="triton")]
    llvm = [entry("/llvm/shared.cpp", output="llvm"), entry("/llvm/b.cpp", output="llvm")]
    merged = compile_commands.merge([triton, llvm])
    assert [(row["file"], row["output"]) for row in merged] == [
        ("/src/a.cpp", "triton"),
        ("/llvm/shared.cpp", "triton"),
        ("/llvm/b.cpp", "llvm"),
    ]


def test_relative_files_are_those_of_their_folder() -> None:
    one, other = entry("../src/a.cpp", "/work/build"), entry("/work/src/./a.cpp", "/elsewhere")
    assert compile_commands.merge([[one], [other]]) == [one]
    assert len(compile_commands.merge([[entry("a.cpp", "/x")], [entry("a.cpp", "/y")]])) == 2


def test_two_commands_for_one_file_both_stay() -> None:
    """A file that is compiled into two libraries has two entries in one database."""
    twice = [entry("/src/a.cpp", output="one"), entry("/src/a.cpp", output="two")]
    assert compile_commands.merge([twice, [entry("/src/a.cpp", output="three")]]) == twice


def test_merging_as_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in inputs:
        path.write_text(json.dumps([entry(f"/src/{path.stem}.cpp")]), encoding="utf-8")
    output = tmp_path / COMPILE_COMMANDS
    output.write_text("older", encoding="utf-8")
    assert compile_commands.main(["--output", str(output), *map(str, inputs)]) == 0
    assert capsys.readouterr().out == "2 commands from 2 databases\n"
    merged = json.loads(output.read_text(encoding="utf-8"))
    assert merged == [entry("/src/a.cpp"), entry("/src/b.cpp")]
    assert sorted(path.name for path in tmp_path.glob("*.json*")) == ["a.json", "b.json", COMPILE_COMMANDS]


def test_a_broken_database_leaves_the_old_one(tmp_path: Path) -> None:
    broken, output = tmp_path / "a.json", tmp_path / COMPILE_COMMANDS
    broken.write_text('[{"file": "/src', encoding="utf-8")
    output.write_text("older", encoding="utf-8")
    with pytest.raises(json.JSONDecodeError):
        compile_commands.main(["--output", str(output), str(broken)])
    assert output.read_text(encoding="utf-8") == "older"


@pytest.mark.parametrize(
    "path", ["/w/pch.dir/cmake_pch.hxx.pch", '"/a space/cmake_pch.hxx.pch"', "/a\\ space/x.pch"]
)
def test_clangd_reads_the_headers_and_not_what_another_version_made_of_them(path: str) -> None:
    """As CMake 3.31 writes it."""
    before, after = "clang++ -O0 -Winvalid-pch", "-Xclang -include -Xclang /w/cmake_pch.hxx -c a.cpp"
    row = {**entry("/src/a.cpp"), "command": f"{before} -Xclang -include-pch -Xclang {path} {after}"}
    (merged,) = compile_commands.merge([[row]])
    assert merged["command"] == f"clang++ -O0 {after}"


def test_clangd_does_not_include_what_we_inject() -> None:
    header = "-Xclang -include -Xclang {}/cmake_pch.hxx"
    injected = header.format('"/a space/CMakeFiles/tritonsmith_pch_compiler.dir')
    own = header.format("/w/pch.dir")
    row = {**entry("/src/a.cpp"), "command": f'clang++ {injected}" {own} -c a.cpp'}
    (merged,) = compile_commands.merge([[row]])
    assert merged["command"] == f"clang++ {own} -c a.cpp"
