"""What is compiled first against an LLVM near the pin, and what is said where that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tests.unit.facts.fakes import git
from tritonsmith.build.triton import suspects
from tritonsmith.build.triton.recipe import PHASE_SUSPECTS
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import BuildObjects
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import checkout, llvm_history
from tritonsmith.facts.llvm_history import Bump

LOGS = Path(__file__).parents[1] / "logs"
NEAR = "19.1.7 in /usr/lib/llvm-19, commit not recorded"
BUILTIN = "third_party/amd/lib/TritonAMDGPUToLLVM/BuiltinFuncToLLVM.cpp"


def put(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def commit(root: Path, subject: str, texts: dict[str, str]) -> str:
    put(root, texts)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", subject)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A pin that moves three times, each time with what it needs, and other commits in between."""
    root = tmp_path / "triton"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    pin, alias = "cmake/llvm-hash.txt", "include/triton/Analysis/Alias.h"
    start = {pin: "0\n", alias: "v0\n", "lib/A.cpp": "0\n", "lib/B.cpp": "0\n", "lib/C.cpp": "0\n"}
    commits = [
        commit(root, "All of it", start),
        commit(root, "LLVM 1", {pin: "1\n", "lib/A.cpp": "1\n"}),
        commit(root, "no bump", {"lib/C.cpp": "1\n"}),
        commit(root, "LLVM 2", {pin: "2\n", alias: "v2\n", "lib/new.cpp": "2\n"}),
        commit(root, "no bump either", {"lib/C.cpp": "2\n"}),
        commit(root, "LLVM 3", {pin: "3\n", "lib/B.cpp": "3\n"}),
    ]
    return root, commits


def test_bumps_before_and_after_a_checkout(history: tuple[Path, list[str]]) -> None:
    root, commits = history
    git(root, "checkout", "--quiet", "--detach", commits[4])
    found = llvm_history.bumps_around(root)
    assert [(bump.commit, bump.distance, bump.after) for bump in found] == [
        (commits[3], 0, False),
        (commits[5], 0, True),
        (commits[1], 1, False),
    ]
    assert found[0].files == ("cmake/llvm-hash.txt", "include/triton/Analysis/Alias.h")
    assert found[1].files == ("cmake/llvm-hash.txt", "lib/B.cpp")


def test_the_root_of_a_history_and_the_end_of_a_shallow_clone_are_no_bumps(
    history: tuple[Path, list[str]], tmp_path: Path
) -> None:
    root, commits = history
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), str(shallow))
    assert llvm_history.bumps_around(shallow) == ()
    git(root, "checkout", "--quiet", "--detach", commits[0])
    assert commits[0] not in [bump.commit for bump in llvm_history.bumps_around(root)]


def test_no_git_is_no_history(tmp_path: Path) -> None:
    assert llvm_history.bumps_around(tmp_path) == ()


@pytest.mark.parametrize(
    ("pinned", "llvm", "taken"),
    [
        ("2024-09-01", 19, ["own", "earlier"]),  # 634158b11: that LLVM is older than its pin
        ("2024-05-10", 19, ["next", "later"]),
        (
            "2024-07-19",
            19,
            ["own", "next", "earlier", "later"],
        ),  # 7d89248a9: near it, on which side nobody knows
        ("2024-09-01", 99, ["own", "next", "earlier", "later"]),  # an LLVM that is not listed
    ],
)
def test_only_bumps_on_the_way_to_the_llvm_count(pinned: str, llvm: int, taken: list[str]) -> None:
    bumps = [
        Bump("own", pinned, (), 0),
        Bump("next", "2030-01-01", (), 0, after=True),
        Bump("earlier", "2020-01-01", (), 1),
        Bump("later", "2030-01-01", (), 1, after=True),
    ]
    assert [bump.commit for bump in suspects.towards(bumps, checkout.llvm_branched(llvm))] == taken


def test_sources_are_taken_as_they_are_and_headers_by_who_includes_them(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "include/triton/Analysis/Alias.h": "",
            "include/triton/Analysis/AxisInfo.h": "",
            "lib/Analysis/Alias.cpp": '#include "triton/Analysis/Alias.h"\n',
            "lib/Analysis/Other.cpp": '#include "triton/Analysis/Alias.h"\n',
            "lib/Long.cpp": '#include "triton/Analysis/AxisInfo.h"\n' + "x" * 99,
            "lib/Short.cpp": '  #  include "triton/Analysis/AxisInfo.h"\n',
            "python/src/ir.cc": "",
        },
    )
    near = Bump("a", "", ("cmake/llvm-hash.txt", "python/src/ir.cc", "lib/gone.cpp", "README.md"), 0)
    far = Bump("b", "", ("include/triton/Analysis/Alias.h", "include/triton/Analysis/AxisInfo.h"), 1)
    chosen = suspects.choose(tmp_path, (near, far))
    assert [str(path.relative_to(tmp_path)) for path in chosen] == [
        "python/src/ir.cc",
        "lib/Analysis/Alias.cpp",
        "lib/Short.cpp",
    ]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ((), ["bin/opt.cpp", "bin/lsp.cpp", "unittest/DialectTest.cpp", "lib/A.cpp"]),
        (("triton", "check-triton"), ["bin/opt.cpp", "bin/lsp.cpp", "unittest/DialectTest.cpp", "lib/A.cpp"]),
        (("triton",), ["lib/Other.cpp", "lib/A.cpp"]),
        (("triton", "opt"), ["bin/opt.cpp", "lib/Other.cpp", "lib/A.cpp"]),
    ],
)
def test_programs_and_tests_that_nobody_builds_are_not_tried(
    tmp_path: Path, targets: tuple[str, ...], expected: list[str]
) -> None:
    """Upstream's e350beb2a moved the pin and changed a program only: libtriton builds without it."""
    include = '#include "triton/Dialects.h"\n'
    put(
        tmp_path,
        {
            **dict.fromkeys(("bin/opt.cpp", "unittest/DialectTest.cpp", "lib/A.cpp"), ""),
            "bin/lsp.cpp": include,
            "lib/Other.cpp": f"{include}// longer",
            "include/triton/Dialects.h": "",
        },
    )
    names = ("bin/opt.cpp", "include/triton/Dialects.h", "unittest/DialectTest.cpp", "lib/A.cpp")
    chosen = suspects.choose(tmp_path, (Bump("a", "", names, 0),), targets)
    assert [str(path.relative_to(tmp_path)) for path in chosen] == expected


def test_the_cheapest_are_compiled_first_and_the_rest_only_if_they_compile(tmp_path: Path) -> None:
    sizes = {
        "third_party/amd/lib/Small.cpp": 1,
        "third_party/amd/python/triton_amd.cc": 2,
        "python/src/ir.cc": 3,
        "lib/Long.cpp": 400,
        "lib/Middle.cpp": 50,
        "lib/Short.cpp": 10,
        "third_party/nvidia/lib/Long.cpp": 900,
    }
    put(tmp_path, {name: "x" * size for name, size in sizes.items()})
    chosen = [tmp_path / name for name in sizes]
    found = suspects.batches(tmp_path, chosen, 2)
    assert [[path.relative_to(tmp_path).as_posix() for path in batch] for batch in found] == [
        ["lib/Short.cpp", "lib/Middle.cpp"],
        ["lib/Long.cpp"],
        ["python/src/ir.cc"],
        [
            "third_party/amd/lib/Small.cpp",
            "third_party/amd/python/triton_amd.cc",
            "third_party/nvidia/lib/Long.cpp",
        ],
    ]
    assert suspects.batches(tmp_path, (), 2) == ()


def failed(log: str, tmp_path: Path) -> tuple[CommandFailedError, BuildObjects]:
    sources = tuple(tmp_path / f"{name}.cpp" for name in ("Alias", "LLVMDIScope", "BuiltinFuncToLLVM"))
    (tmp_path / "compile_commands.json").write_text(
        "[" + ",".join(f'{{"file": "{source}"}}' for source in sources) + "]"
    )
    step = BuildObjects(
        Path("/ninja"), tmp_path, 2, (*sources, tmp_path / "left_out.cpp"), phase=PHASE_SUSPECTS
    )
    output = tuple((LOGS / f"{log}.txt").read_text(encoding="utf-8").splitlines())
    return CommandFailedError(step, 1, output, Path("/logs/build.log")), step


def explained(log: str, tmp_path: Path, *, without: tuple[str, ...] = (), dirty: bool = False) -> StepError:
    failure, step = failed(log, tmp_path)
    checkout = made.checkout("3.2")
    checkout = replace(checkout, dirty=dirty, features=checkout.features - set(without))
    return suspects.explain(
        failure, step, llvm=NEAR, pin=made.PIN, checkout=checkout, backends=("nvidia", "amd")
    )


def test_all_that_fails_is_told_at_once_with_both_llvms(tmp_path: Path) -> None:
    error = explained("llvm-near-pin-several", tmp_path)
    assert error.what == "2 of the 3 files compiled first failed; the rest of the build was not started"
    assert error.where == "/home/dev/triton/include/triton/Analysis/Alias.h:89"
    assert error.why is not None
    assert error.why.splitlines()[0].endswith("[llvm-near-pin]")
    assert NEAR in error.why
    assert made.PIN in error.why
    assert "virtual function 'visitOperation' has a different return type" in error.why
    assert "LLVMDIScope.cpp:104:27: error: no matching function" in error.why
    assert not any("--backends" in hint for hint in error.hints)  # all backends share these files
    assert "to build anyway: --force" in error.hints


def test_more_steps_than_files_are_not_counted_as_files(tmp_path: Path) -> None:
    failure, step = failed("llvm-near-pin-several", tmp_path)
    few = replace(step, sources=step.sources[:1])
    checkout = made.checkout("3.2")
    error = suspects.explain(failure, few, llvm=NEAR, pin=made.PIN, checkout=checkout, backends=("nvidia",))
    assert error.what.startswith("2 steps failed that the 1 files compiled first need; ")


@pytest.mark.parametrize(
    ("bin_needs_amd", "hint"),
    [
        (False, "only files of amd fail, so leave amd out: --backends nvidia"),
        (True, "to build only libtriton: --backends nvidia --target triton"),
    ],
)
def test_what_can_be_built_without_a_backend(tmp_path: Path, bin_needs_amd: bool, hint: str) -> None:
    """`bin/` includes AMD's headers whatever the backends since 2024-05-06, before only `#ifdef USE_ROCM`."""
    error = explained("llvm-near-pin-note", tmp_path, without=() if bin_needs_amd else ("bin-needs-amd",))
    assert error.hints[0].endswith(hint)


def test_ones_own_mistake_in_such_a_file_is_no_fault_of_the_llvm(tmp_path: Path) -> None:
    error = explained("unknown-cpp", tmp_path, dirty=True)
    assert error.why is not None
    assert "near-pin" not in error.why
    assert "expected ';' after expression" in error.why


def test_only_what_the_tree_compiles_is_asked_for(tmp_path: Path) -> None:
    _, step = failed("unknown-cpp", tmp_path)
    assert step.argv()[-3:] == tuple(
        f"{tmp_path}/{name}.cpp^" for name in ("Alias", "LLVMDIScope", "BuiltinFuncToLLVM")
    )
    assert step.argv()[:6] == ("/ninja", "-C", str(tmp_path), "-j2", "-k", "0")
    assert replace(step, sources=(tmp_path / "left_out.cpp",)).argv() == ()
    (tmp_path / "compile_commands.json").write_text("{")
    with pytest.raises(StepError, match="cannot read the compile commands"):
        step.argv()
