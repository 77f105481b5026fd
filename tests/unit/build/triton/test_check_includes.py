"""What `build-triton --check-includes` compiles, and what it says of a missing include."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.build import made
from tritonsmith.build.triton import check_includes, recipe, suspects
from tritonsmith.build.triton.check_includes import IncludeCheck
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import BuildObjects, OutdateForeignOutput, Plan, Run, Step, Write
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import build_folder

OUTPUT = """\
[1/2] Checking /t/lib/Good.cpp
FAILED: [code=1] /t/lib/Bad.cpp.checked
cd /b && clang++ /t/lib/Bad.cpp -fsyntax-only
/t/lib/Bad.cpp:3:12: error: no type named 'DenseMap' in namespace 'llvm'
    3 | llvm::DenseMap<int, int> found;
/t/lib/Bad.cpp:4:1: error: use of undeclared identifier 'nowhere'
2 errors generated.
ninja: build stopped: cannot make progress due to previous errors.
"""


def check(*sources: str) -> IncludeCheck:
    inputs = made.inputs(precompiled=made.precompiled())
    return IncludeCheck(inputs, {Path(name): Path(name) for name in sources}, "main")


def test_the_sources_are_compiled_twice_and_nothing_is_linked() -> None:
    plan = check("/t/lib/A.cpp").plan
    (objects,) = (step for step in plan.steps if isinstance(step, BuildObjects))
    assert objects.sources == (Path("/t/lib/A.cpp"),)
    assert plan.steps[: plan.steps.index(objects)] == recipe.before_compiles(check().inputs)
    last = "\n".join(plan.steps[-1].shell())
    assert check_includes.FOLDER in last
    assert "-k 0" in last


def test_without_a_difference_there_is_nothing_to_do() -> None:
    assert check().plan.steps == ()


def test_the_error_names_the_header_that_declares_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "llvm/ADT/Hashing.h": "class DenseMap;\n",  # only a declaration
        "llvm/ADT/DenseMap.h": "template <class K, class V>\nclass DenseMap : public Base {\n",
    }
    for name, text in texts.items():
        (tmp_path / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "include" / name).write_text(text, encoding="utf-8")
    headers = (tmp_path / "gone.h", *(tmp_path / "include" / name for name in texts))
    monkeypatch.setattr(build_folder, "recorded_headers", lambda *_: headers)
    asked = check("/t/lib/Good.cpp", "/t/lib/Bad.cpp")
    step = asked.plan.steps[-1]
    told = check_includes.explain(
        CommandFailedError(step, 1, tuple(OUTPUT.splitlines()), tmp_path / "log"), asked
    )
    assert told.what == "without the precompiled header, 1 of 2 files fail to compile"
    assert told.where == "/t/lib/Bad.cpp:3"
    assert told.why is not None
    assert told.why.splitlines() == [
        "/t/lib/Bad.cpp:3:12: error: no type named 'DenseMap' in namespace 'llvm'",
        '  DenseMap: #include "llvm/ADT/DenseMap.h"',
    ]


def test_for_a_header_that_changed_a_source_that_includes_it(tmp_path: Path) -> None:
    texts = {
        "lib/User.cpp": '#include "triton/A.h"\n',
        "lib/Other.cpp": "",
        "include/triton/A.h": "",
        "include/triton/Unused.h": "",
        "docs/notes.md": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / name for name in ("docs/notes.md", "include/triton/A.h", "lib/Other.cpp")]
    files.append(tmp_path / "include/triton/Unused.h")
    assert suspects.compiled_for(tmp_path, files) == {
        tmp_path / "include/triton/A.h": tmp_path / "lib/User.cpp",
        tmp_path / "lib/Other.cpp": tmp_path / "lib/Other.cpp",
        tmp_path / "include/triton/Unused.h": None,
    }


class Ran:
    """A session in which each plan succeeds."""

    task, log = "build-triton", Path("/log")

    def __init__(self, env: EnvDir) -> None:
        self.env = env

    def run(self, plan: Plan) -> None:
        assert plan.title

    def run_unseen(self, steps: tuple[Step, ...]) -> None:
        (step,) = steps
        assert isinstance(step, Write)
        step.path.parent.mkdir(parents=True, exist_ok=True)
        step.path.write_text(step.text, encoding="utf-8")


def test_what_the_build_does_not_compile_is_not_called_well(tmp_path: Path) -> None:
    inputs = made.inputs(precompiled=made.precompiled())
    inputs = replace(inputs, env=replace(inputs.env, path=tmp_path))
    inputs.env.build.mkdir(parents=True)
    (inputs.env.build / "compile_commands.json").write_text('[{"file": "/t/A.cpp"}]', encoding="utf-8")
    a, unused, other = Path("/t/A.cpp"), Path("/t/Unused.h"), Path("/t/Other.cpp")
    some = IncludeCheck(inputs, {a: a, unused: None, other: other}, "main")
    assert check_includes.execute(some, cast("Session", Ran(inputs.env))) == (unused, other)
    with pytest.raises(StepError, match="nothing was checked"):
        check_includes.execute(replace(some, changed={other: other}), cast("Session", Ran(inputs.env)))


@pytest.mark.parametrize("receipt", [{}, {"settings": {"triton.build-type": "Release"}}])
def test_a_folder_that_is_configured_otherwise_and_not_built_is_told_by_the_doctor(
    receipt: dict[str, Any], tmp_path: Path
) -> None:
    inputs = made.inputs(precompiled=made.precompiled())
    inputs = replace(inputs, env=replace(inputs.env, path=tmp_path))
    some = IncludeCheck(inputs, {}, "main", receipt=receipt)
    check_includes.execute(some, cast("Session", Ran(inputs.env)))
    attempt = receipts.unfinished(inputs.env)
    assert bool(attempt) == bool(receipt)
    if attempt:
        assert (attempt.what, attempt.settings) == ("only the includes were checked", receipt["settings"])


@pytest.mark.parametrize("again", [False, True])
def test_the_flags_reach_the_recipe(again: bool) -> None:
    inputs = made.inputs(precompiled=made.precompiled())
    some = IncludeCheck(inputs, {Path("/t/A.cpp"): Path("/t/A.cpp")}, "main", again=again)
    before = recipe.before_compiles(inputs, again=again)
    assert some.plan.steps[: len(before)] == before


def test_a_library_of_another_environment_is_outdated_before_cmake_runs() -> None:
    """CMake has Ninja compact its log, which is newer then than the library that another folder wrote."""
    steps = recipe.plan(made.inputs()).steps
    outdates = [number for number, step in enumerate(steps) if isinstance(step, OutdateForeignOutput)]
    runs_cmake = [
        number
        for number, step in enumerate(steps)
        if isinstance(step, Run) and "cmake" in Path(step.argv[0]).name
    ]
    assert len(outdates) == 1
    assert outdates[0] < runs_cmake[0]
