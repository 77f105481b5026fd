"""The first bad commit of a clone of LLVM, by its llc: built by CMake, on the llir of a real kernel.

This LLVM's llc is a script: the code that Triton made of the llir, with one line more since one commit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, commit, git, plant, ready, require_llvm
from tritonsmith.compiler import targets, up
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import llvm_history
from tritonsmith.lab import journal
from tritonsmith.lab import terms as language
from tritonsmith.lab.bisect import llvm_range
from tritonsmith.lab.bisect.candidates import CommitBuilds
from tritonsmith.lab.bisect.kernels import KernelCompiles, broken_limit
from tritonsmith.lab.bisect.llvm_range import LLC, OPT, LlcBuilds, LlvmBisect, LlvmRange
from tritonsmith.lab.bisect.program_tests import CommandTests
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.journal import Journal

ADD = up.FILE
SCRIPT = "llvm/tools/llc/llc.sh"
OPT_SCRIPT = "llvm/tools/opt/opt.sh"
NVPTX = "llvm/lib/Target/NVPTX/NVPTX.cpp"
FILES = {
    "llvm/CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.20)
project(LLVM LANGUAGES NONE)
file(READ lib/Target/NVPTX/NVPTX.cpp source)
if(source MATCHES "broken")
  set(broken COMMAND broken)
endif()
foreach(program llc opt)
  add_custom_target(${program} ${broken} COMMAND ${CMAKE_COMMAND} -E copy
    ${CMAKE_SOURCE_DIR}/tools/${program}/${program}.sh ${CMAKE_BINARY_DIR}/bin/${program})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS lib/Target/NVPTX/NVPTX.cpp)
""",
    "cmake/README": "",
    "third-party/README": "",
    NVPTX: "",
    SCRIPT: """\
#!/bin/sh
test "$1" = --version && { echo "LLVM version 19.1.7"; exit; }
test "$1" = --help && { echo "OVERVIEW: llvm system compiler"; exit; }
for word; do
  case $word in *.llir) llir=$word ;; *.ptx) out=$word ;; esac
done
test "$out" || exit 0
cat "${llir%.llir}.ptx" > "$out"
""",
    OPT_SCRIPT: """\
#!/bin/sh
echo "error: this opt optimizes nothing" >&2
exit 1
""",
}
REAL = '#!/bin/sh\nexec {program} {flags} "$@"\n'  # a program of a real LLVM
ROWS = """\
import triton
import triton.language as tl


@triton.jit
def rows(x, out, stride, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(N):
        total = total * 0.5 + tl.load(x + row * stride + at)
    tl.store(out + at, total)
"""


@dataclass(frozen=True)
class Llvm:
    """A clone.

    Attributes:
        clone: its folder.
        hashes: message to commit.
        builds: of its llc.
        kernel: compiles of a kernel.
        triton: what compiles it.
    """

    clone: Path
    hashes: dict[str, str]
    builds: LlcBuilds
    kernel: KernelCompiles
    triton: Triton

    def search(self, when: str, folder: Path, old: str = "first", new: str = "docs again") -> LlvmBisect:
        """A search for the llc whose code is bad by this term."""
        of_tritons = broken_limit(self.kernel, language.parse([when], "--when"), lambda: self.triton)
        session = BisectSession(folder / "bisects" / "x", BisectQuestion(good="a", bad="b"), Journal())
        ends = self.hashes[old], self.hashes[new]
        history = llvm_history.read(self.clone, *ends, ("NVPTX",))
        sides = {"good": self.triton, "bad": self.triton}
        made = self.builds.space.root / "llc" / folder.name
        tests = {
            LLC: llvm_range.llc_tests(of_tritons, sides, made, optimizes=False),
            OPT: llvm_range.llc_tests(of_tritons, sides, made / "opt", optimizes=True),
        }
        found = LlvmRange(*ends, ("NVPTX",), history)
        return LlvmBisect(found, self.builds, tests, session, lambda _: None)


@pytest.fixture(scope="module")
def llvm(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llvm]:
    root = tmp_path_factory.mktemp("llvm")
    smith = with_wheel.beside(root)
    clone = root / "my llvm"
    clone.mkdir()
    git(clone, "init", "--quiet", "--initial-branch=main")
    hashes: dict[str, str] = {}

    def change(what: str, **texts: str) -> None:
        for path, text in texts.items():
            file = clone / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for script in (SCRIPT, OPT_SCRIPT):
            (clone / script).chmod(0o755)
        hashes[what] = commit(clone, what)

    change("first", **FILES)
    change("x86", **{"llvm/lib/Target/X86/X86.cpp": "1"})
    change("comment", **{NVPTX: "// comment\n"})
    change("broken", **{NVPTX: "// broken\n"})
    change("mended", **{NVPTX: "// mended\n"})
    change("culprit (#12)", **{SCRIPT: FILES[SCRIPT] + 'echo "// slower" >> "$out"\n'})
    change("support", **{"llvm/lib/Support/APInt.cpp": "1"})
    change("docs again", **{"llvm/docs/LangRef.rst": "1"})
    real = {name: REAL.format(program=f"{LLVM}/bin/{name}", flags="") for name in ("llc", "opt")}
    change("real", **{SCRIPT: real["llc"], OPT_SCRIPT: real["opt"]})
    change("passes", **{"llvm/lib/Passes/Passes.cpp": "1"})
    slower = REAL.format(program=f"{LLVM}/bin/opt", flags="-unroll-threshold-aggressive=1")
    change("unroll less (#34)", **{OPT_SCRIPT: slower})
    change("support again", **{"llvm/lib/Support/APInt.cpp": "2"})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in smith.environ.items():
            patch.setenv(name, value)
        builds = LlcBuilds(clone, settings.load("debug", only_shown=True), Workspace(smith.home), ("NVPTX",))
        asked = CompileRequest(ADD, "", "*fp32:16,*fp32:16,*fp32:16,i32,64", (targets.parse("sm_90"),))
        triton = Triton("good", python=str(smith.env("wheel") / "venv" / "bin" / "python"))
        kernel = KernelCompiles((ComparedKernel("add", asked),), smith.home / "tests", silent=True)
        yield Llvm(clone, hashes, builds, kernel, triton)


@pytest.fixture(scope="module")
def found(llvm: Llvm, tmp_path_factory: pytest.TempPathFactory) -> tuple[LlvmBisect, list[str]]:
    search = llvm.search("ptx contains slower", tmp_path_factory.mktemp("found"))
    return search, list(search.run())


def test_the_commit_since_which_llc_is_worse_is_found(
    llvm: Llvm, found: tuple[LlvmBisect, list[str]]
) -> None:
    search, said = found
    assert [one.commit for one in search.suspects] == [llvm.hashes["culprit (#12)"]]
    assert said[0].startswith(f"LLVM: first bad commit: {llvm.hashes['culprit (#12)'][:12]} culprit (#12)")
    assert "https://github.com/llvm/llvm-project/pull/12" in said[0]
    assert "by llc on the llir of the good side" in said[1]


def test_what_does_not_build_is_skipped_and_what_llc_is_not_built_from_is_not_tested(
    llvm: Llvm, found: tuple[LlvmBisect, list[str]]
) -> None:
    tested = {one["commit"]: one for one in found[0].as_json()["tested"]}
    assert not {llvm.hashes[name] for name in ("x86", "docs again")} & tested.keys()
    search = llvm.search("ptx contains slower", llvm.clone.parent / "skips", "broken", "mended")
    head, good, _ = search.run()
    assert "LLVM's commits are not searched" in head
    assert good.startswith("LLVM: llir of the good side: skip: ")


def test_outcomes_are_kept_so_that_nothing_is_built_again(
    llvm: Llvm, found: tuple[LlvmBisect, list[str]]
) -> None:
    search, said = found
    gone = replace(llvm.builds, clone=llvm.clone / "nowhere")
    assert list(replace(search, builds=gone).run()) == said


@pytest.mark.slow
def test_a_commit_that_is_skipped_by_hand_is_not_tested(llvm: Llvm, tmp_path: Path) -> None:
    smith = Smith(tmp_path, cwd=tmp_path)
    search = llvm.search("ptx contains slower", smith.home)
    culprit = llvm.hashes["culprit (#12)"]
    about = replace(search.session.question, llvm_source=str(llvm.clone))
    kept = Journal(search.session.folder / journal.FILE)
    replace(search.session, question=about, journal=kept).saved()
    assert "cannot skip" in smith("bisect.skip", culprit[:9], code=2).error  # LLVM is not searched yet
    list(search.run())
    assert f"{culprit} is skipped" in smith("bisect.skip", culprit[:9]).err
    said = list(search.run())
    assert "first bad commit" not in said[0]
    assert any(f"{culprit[:12]} culprit (#12): skipped: skipped by hand" in line for line in said)
    assert json.loads(smith("bisect.status", "--json").out)["tested"] == []


@pytest.mark.slow
def test_where_llc_alone_does_not_show_it_nothing_is_blamed(llvm: Llvm, tmp_path: Path) -> None:
    search = llvm.search("ptx contains slower", tmp_path, new="comment")
    head, good, bad, by_opt, refused, _, hint = search.run()
    assert "LLVM's code generator alone does not show it" in head
    assert "llir of the good side: good: ptx does not contain slower" in good
    assert "llir of the bad side" in bad
    assert "LLVM's commits are not searched with opt and llc" in by_opt
    assert "skip: " in refused
    assert "this opt optimizes nothing" in refused
    assert "invoke blame" in hint
    assert search.suspects == ()


@pytest.mark.slow
def test_where_llc_alone_does_not_show_it_the_o3_before_it_is_searched(llvm: Llvm, tmp_path: Path) -> None:
    require_llvm()
    file = tmp_path / "rows.py"
    file.write_text(ROWS, encoding="utf-8")
    asked = CompileRequest(file, "", "*fp32:16,*fp32:16,i32,4,128", (targets.parse("sm_80"),))
    rows = replace(llvm.kernel, kernels=(ComparedKernel("rows", asked),), _known={})
    search = replace(llvm, kernel=rows).search("ptx contains bra", tmp_path, "real", "support again")
    alone, good, *_, found, figures = search.run()
    assert "LLVM's code generator alone does not show it" in alone
    assert "good: ptx does not contain bra" in good
    culprit = llvm.hashes["unroll less (#34)"]
    assert found.startswith(f"LLVM: first bad commit: {culprit[:12]} unroll less (#34)")
    assert "by opt and llc on the llir of the good side" in figures
    told = search.as_json()
    assert (told["by"], told["llir_of"], told["decided"]) == ("opt and llc", "good", True)
    assert {one["by"] for one in told["tested"]} == {"llc", "opt and llc"}


def test_a_command_has_no_llir(llvm: Llvm, tmp_path: Path) -> None:
    search = llvm.search("ptx contains slower", tmp_path)
    none = llvm_range.llc_tests(CommandTests(("true",), tmp_path, tmp_path), {}, tmp_path, optimizes=False)
    said = list(replace(search, tests={LLC: none, OPT: none}).run())
    assert said == ["LLVM: its commits are not tested: a command or a test provides no llir for llc"]


def test_the_users_clone_stays_as_it_was(llvm: Llvm, found: tuple[LlvmBisect, list[str]]) -> None:
    assert found
    assert git(llvm.clone, "status", "--porcelain", "--ignored") == ""
    assert git(llvm.clone, "worktree", "list").count(os.linesep) == 0
    assert git(llvm.clone, "rev-parse", "HEAD") == llvm.hashes["support again"]


def test_a_commit_that_moves_the_pin_names_the_commits_of_llvm(
    llvm: Llvm, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_llvm()
    root = tmp_path_factory.mktemp("bump")
    clone = plant("mini_triton", root / "triton")

    def change(what: str, pin: str, version: str) -> str:
        (clone / "cmake" / "llvm-hash.txt").write_text(f"{pin}\n", encoding="utf-8")
        init = clone / "python" / "triton" / "__init__.py"
        init.write_text(init.read_text(encoding="utf-8").replace('"3.6.0"', f'"{version}"'), encoding="utf-8")
        return commit(clone, what)

    old, new = llvm.hashes["first"], llvm.hashes["docs again"]
    good, bad = change("pinned", old, "3.6.0"), change("[BACKEND] bump to LLVM (#5)", new, "3.6.1")
    file = root / "mine.toml"
    file.write_text(f'[llvm]\ndir = "{LLVM}"\n[triton]\nbuild-type = "Debug"\n', encoding="utf-8")
    smith = Smith(root, cwd=clone)
    made = CommitBuilds(clone, settings.load(str(file), only_shown=True), Workspace(smith.home))
    ready(smith, tmp_path_factory, made.env(old).name)
    newer = "import sys, triton; sys.exit(triton.__version__ > '3.6.0')"
    asked = ("--good", good, "--bad", bad, "--source", clone, "--env", file)
    told = json.loads(smith("bisect", *asked, "--json", "--", "python", "-c", newer).out)
    assert (told["culprit"]["commit"], told["culprit"]["bump"]) == (bad, True)
    assert told["llvm"]["compare"].endswith(f"/compare/{old}...{new}")
    assert told["llvm"]["commits"] is None
    said = smith("bisect.resume", "--llvm-source", llvm.clone).out
    assert said.count("LLVM: 7 commits, 3 of them in the code generator for NVPTX and AMDGPU") == len(
        ("answer", "block to paste")
    )
    assert "a command or a test provides no llir" in said
    (page,) = (smith.home / "bisects").glob("*/report.html")
    assert "in the code generator for NVPTX and AMDGPU" in page.read_text(encoding="utf-8")
