"""A compile from what is asked to the manifest, with the stand-in for Triton of `tests/unit/worker`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.worker.test_compile import append, place
from tritonsmith.compiler import call, manifest, request, run, targets
from tritonsmith.compiler.interpreter import Interpreter, describe_kernel
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, LockedError, SmithError, UsageError
from tritonsmith.core.plan import Run
from tritonsmith.lab.batch import work_unit

__all__ = ["place"]  # the fixture
PARAMS = """
class Param:
    def __init__(self, name):
        self.name, self.is_constexpr = name, name.isupper()
JITFunction.params = property(lambda self: [Param(name) for name in self.arg_names])
"""


@pytest.fixture
def where(place: Path) -> Interpreter:
    """An interpreter that has the stand-in."""
    python = place / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{place}/site" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return Interpreter(
        python, Workspace(place / "home"), place / "home" / "kernels", 1, 30, {"python": str(python)}
    )


def wanted(
    place: Path, kernel: str = "k", signature: str = "*fp32,WHAT='x'", **more: object
) -> CompileRequest:
    return CompileRequest(place / "kernel.py", kernel, signature, targets.parse_all(["a100"]), **more)  # type: ignore[arg-type]


def test_variables_that_change_the_code_are_in_the_command(
    place: Path, where: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = place / "site/triton/_C/libtriton.py"
    library.parent.mkdir()
    (library.parent / "__init__.py").touch()
    library.write_text("def get_cache_invalidating_env_vars(): return {'DISABLE_PTXAS_OPT': 'true'}\n")
    monkeypatch.setenv("DISABLE_PTXAS_OPT", "on and on")
    made = run.compile_all(wanted(place), where, place / "out", silent=True)
    assert made.command.startswith("DISABLE_PTXAS_OPT='on and on' tritonsmith kernel.compile ")


def test_variables_that_hold_stages_back_or_share_a_cache_do_not_reach_the_compiler(
    place: Path, where: Interpreter
) -> None:
    (step,) = (one for one in run.prepare(wanted(place), where).plan.steps if isinstance(one, Run))
    gone = {name for name, value in step.env if value is None}
    assert gone == {"TRITON_INTERPRET", "TRITON_STORE_BINARY_ONLY", "TRITON_CACHE_MANAGER"}


def test_a_kernel_is_described_within_the_time_of_a_compile(
    place: Path, where: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []

    def late(*_: object, timeout: float, **__: object) -> None:
        times.append(timeout)
        raise call.UnansweredError("the interpreter did not respond in time")

    monkeypatch.setattr(call, "ask_one", late)
    with pytest.raises(FactError, match="cannot inspect the kernel's file"):
        describe_kernel(wanted(place), "k", targets.parse("a100"), where)
    assert times == [where.timeout]


def test_a_link_to_a_folder_is_that_folder(place: Path, where: Interpreter) -> None:
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    works = {run.prepare(wanted(place), where, place / name).work for name in ("real", "link")}
    assert len(works) == 1, "two runs would not see each other's lock"


def test_a_stage_that_none_of_the_targets_has_is_told(place: Path, where: Interpreter) -> None:
    made = run.execute(run.prepare(wanted(place, stages=("ttir", "hsaco")), where), where, silent=True)
    assert made.notes[-1] == "no point has a stage hsaco: none of these targets produces it"
    made = run.execute(run.prepare(wanted(place, stages=("ttir",)), where), where, silent=True)
    assert not [text for text in made.notes if "no point" in text]


def test_without_triton_the_interpreter_is_named(place: Path, where: Interpreter) -> None:
    (place / "site" / "triton" / "__init__.py").write_text("import no_such_thing")
    with pytest.raises(FactError, match="cannot import Triton") as caught:
        run.compile_all(wanted(place), where, silent=True)
    assert caught.value.where == str(where.python)


def test_a_file_that_ends_the_process_is_suspected(place: Path, where: Interpreter) -> None:
    append(place / "site/triton/runtime/jit.py", "import os; os._exit(9)\n")
    with pytest.raises(SmithError, match="exit code 9") as caught:
        run.compile_all(wanted(place), where, silent=True)
    assert "while importing" in caught.value.hints[0]


def test_a_swept_name_that_nobody_has_may_be_a_parameters(place: Path, where: Interpreter) -> None:
    sweeps, _ = request.sweeps_of(["WHA=1,2"])
    with pytest.raises(UsageError, match="neither a parameter of the kernel nor an option") as caught:
        run.compile_all(wanted(place, sweeps=sweeps), where, silent=True)
    assert "did you mean 'WHAT'?" in caught.value.hints


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kernel": "kk"}, "this file has no kernel 'kk'"),
        ({"signature": "*fp32"}, "does not set WHAT"),
        ({"signature": "*fp33,1"}, "which Triton does not have"),
        ({"autotune": True}, "has no @triton.autotune"),
    ],
)
def test_what_the_text_tells_needs_no_triton(place: Path, more: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run.check(wanted(place, **more))  # type: ignore[arg-type]
    run.check(wanted(place))


def test_two_workspaces_do_not_write_to_one_folder_at_once(place: Path, where: Interpreter) -> None:
    """Both would end well, and the points of one would be missing from the manifest."""
    out = place / "out"
    other = replace(where, space=Workspace(place / "another home"))
    first, second = (run.prepare(wanted(place), one, out) for one in (where, other))
    assert first.work != second.work
    with (
        manifest.hold_output(first.out, where.space, "kernel.compile"),
        pytest.raises(LockedError, match="another run is busy in this output folder") as caught,
    ):
        run.execute(second, other, silent=True)
    assert caught.value.where == str(out)
    assert run.execute(second, other, silent=True).manifest.points[0].status == "ok"


def test_a_command_that_reads_its_output_folder_keeps_others_out(place: Path, where: Interpreter) -> None:
    """The next compile of this kernel begins with the removal of the folder."""
    out = place / "out"
    other = replace(where, space=Workspace(place / "another home"))
    with manifest.keep_locks():
        run.execute(run.prepare(wanted(place), where, out), where, silent=True)
        run.execute(run.prepare(wanted(place), where, out), where, silent=True)
        with ThreadPoolExecutor() as another, pytest.raises(LockedError, match="in this output folder"):
            another.submit(run.execute, run.prepare(wanted(place), other, out), other, silent=True).result()
    assert run.execute(run.prepare(wanted(place), other, out), other, silent=True).manifest.points


def test_a_kept_lock_is_the_same_in_its_own_body_and_by_a_link(place: Path, where: Interpreter) -> None:
    """Otherwise a command would wait a minute for itself."""
    out, link = place / "out", place / "link"
    link.symlink_to(out)
    with manifest.keep_locks():
        with manifest.hold_output(out, where.space, "a"), manifest.hold_output(out, where.space, "b"):
            pass
        with manifest.hold_output(link, where.space, "c"):
            pass
        with pytest.raises(KeyError), manifest.hold_output(place / "another", where.space, "d"):
            raise KeyError
        with manifest.give_locks_back(), manifest.hold_output(place / "another", where.space, "e"):
            pass
    with manifest.hold_output(out, where.space, "f"):
        pass


@pytest.mark.slow
def test_several_kernels_are_not_kept_locked(place: Path, where: Interpreter) -> None:
    """Two commands that compile them in another order would wait for each other."""
    asked = [replace(wanted(place), name=name) for name in ("one", "another")]
    with manifest.keep_locks():
        first, second = run.execute_all(asked, where, place / "out", silent=True)
        with ThreadPoolExecutor() as another:
            again = another.submit(run.execute_all, asked, where, place / "out", silent=True).result()
    assert [made.manifest.folder for made in again] == [first.manifest.folder, second.manifest.folder]
    assert all(point.status == "ok" for made in again for point in made.manifest.points)


OWN = """
import triton
def own(fn):
    CHANGE
    return fn
@own
@triton.jit
def k(x, WHAT): pass
"""


@pytest.mark.slow
def test_the_parameters_in_the_text_are_presumed_where_the_signature_has_them_all(
    place: Path, where: Interpreter
) -> None:
    append(place / "site/triton/runtime/jit.py", PARAMS)
    (place / "kernel.py").write_text(OWN.replace("CHANGE", "pass"))
    presumed = run.prepare(wanted(place), where, place / "out", presume=True)
    assert presumed.presumed
    described = run.prepare(wanted(place), where, place / "out")
    assert (presumed.points, described.presumed) == (described.points, False)
    assert run.execute(presumed, where, silent=True).manifest.points[0].status == "ok"
    # A default may be another one, too.
    (place / "kernel.py").write_text(OWN.replace("CHANGE", "pass").replace("WHAT", "WHAT=2"))
    assert not run.prepare(wanted(place, signature="*fp32"), where, place / "out", presume=True).presumed
    # Neither is it presumed that the signature is wrong.
    more = wanted(place, signature="*fp32,WHAT='x',y=i32")
    assert run._presumed_points(more) is None


@pytest.mark.slow
def test_a_decorator_that_changes_the_parameters_is_noticed(place: Path, where: Interpreter) -> None:
    append(place / "site/triton/runtime/jit.py", PARAMS)
    (place / "kernel.py").write_text(OWN.replace("CHANGE", "fn.arg_names.reverse()"))
    presumed = run.prepare(wanted(place), where, place / "out", presume=True)
    with pytest.raises(run.OtherParametersError, match="has the parameters WHAT, x"):
        run.execute(presumed, where, silent=True)
    # For one target of two.
    arch = "triton.runtime.driver.active.get_current_target().arch"
    (place / "kernel.py").write_text(OWN.replace("CHANGE", f"{arch} == 80 and fn.arg_names.reverse()"))
    both = replace(wanted(place), targets=targets.parse_all(["h100", "a100"]))
    presumed = run.prepare(both, where, place / "out", presume=True)
    with pytest.raises(run.OtherParametersError, match="a target has another kernel"):
        run.execute(presumed, where, silent=True)


@pytest.mark.slow
def test_a_unit_of_many_is_compiled_with_the_parameters_that_the_kernel_has(
    place: Path, where: Interpreter
) -> None:
    append(place / "site/triton/runtime/jit.py", PARAMS)
    (place / "kernel.py").write_text(OWN.replace("CHANGE", "fn.arg_names.reverse()"))
    named = wanted(place, signature="x=*fp32,WHAT='x'")
    made = work_unit.compile_here(named, where, place / "out")
    assert isinstance(made, manifest.Manifest)
    assert made.points[0].status == "ok"
    assert list(made.points[0].signature) == ["WHAT", "x"]


@pytest.mark.slow
@pytest.mark.parametrize("order", [("h100", "a100"), ("a100", "h100")])
def test_a_file_that_one_gpu_cannot_look_at_compiles_for_the_others(
    place: Path, where: Interpreter, order: tuple[str, ...]
) -> None:
    """The default is no literal: the file is run to know the parameters, for each target."""
    append(place / "site/triton/runtime/jit.py", PARAMS)
    arch = "triton.runtime.driver.active.get_current_target().arch"
    (place / "kernel.py").write_text(
        f"import triton\ndef size():\n    assert {arch} >= 90, 'too old'\n    return 1\n"
        "N = size()\n@triton.jit\ndef k(x, WHAT=N): pass\n"
    )
    one = replace(wanted(place), targets=targets.parse_all(order))
    rows = run.compile_all(one, where, place / "out", silent=True).points
    assert {row.target: row.status for row in rows} == {"cuda:90:32": "ok", "cuda:80:32": "failed"}
    old = replace(one, targets=targets.parse_all(["a100"]))
    with pytest.raises(FactError, match="AssertionError: too old"):
        run.compile_all(old, where, place / "out", silent=True)
