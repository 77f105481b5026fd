"""Requests and rows cross the border between two interpreters as they are, or are refused by name."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from tests.unit.worker import preloaded
from tests.unit.worker.test_compile import place as place  # noqa: PLC0414 - a fixture
from tests.unit.worker.test_compile import point, request
from tritonsmith import worker
from tritonsmith.compiler import call
from tritonsmith.compiler.call import UnansweredError
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.worker import messages
from tritonsmith.worker.__main__ import COMMANDS
from tritonsmith.worker.border import (
    BorderError,
    RequestRefusedError,
    WorkerRefusal,
    refusal_text,
    request_of,
    row_of,
    text_of,
)
from tritonsmith.worker.messages import (
    CheckedRow,
    CheckRequest,
    CompiledRow,
    CompileHead,
    DescribedRow,
    DescribeRequest,
    FileRequest,
    LayoutRequest,
    PointRequest,
    PointsRequest,
    ProfiledRow,
    ProfileRequest,
    ReadyRow,
    StageRequest,
    StageRow,
    SurgeryRequest,
)

pytestmark = pytest.mark.unit

SHAPES = [
    shape
    for _, shape in inspect.getmembers(messages, inspect.isclass)
    if shape.__module__ == messages.__name__ and shape is not FileRequest
]
ASKED = [shape for shape in SHAPES if hasattr(shape, "COMMAND")]
# Three have none of their own: `serve` is called by the pool, `attend` with requests to compile, and `canary`
# by a capture.
WITHOUT = {"serve", "attend", "canary", "cache-check"}
SAMPLES: dict[str, Any] = {
    "str": "text",
    "int": 7,
    "float": 1.5,
    "bool": True,
    "Any": {"class": "ClusterInfo"},
    "None": None,
}


def sample(annotation: str) -> Any:
    """A value of an annotated type, as the sender holds it."""
    if " | " in annotation and not annotation.endswith("]"):
        return sample(annotation.split(" | ", maxsplit=1)[0])
    head, _, inner = annotation.removesuffix("]").partition("[")
    if head == "tuple":
        if inner.endswith(", ..."):
            return (sample(inner.removesuffix(", ...")),) * 2
        return tuple(map(sample, inner.split(", ")))
    if head == "dict":
        return {"name": sample(inner.removeprefix("str, "))}
    return SAMPLES[annotation] if annotation in SAMPLES else filled(getattr(messages, annotation))


def filled(shape: type[Any]) -> Any:
    return shape(**{one.name: sample(str(one.type)) for one in fields(shape)})


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_what_is_sent_is_what_arrives(shape: type[Any]) -> None:
    get_type_hints(shape)  # the annotations name what there is
    sent = filled(shape)
    assert row_of(shape, text_of(sent)) == sent
    assert request_of(shape, text_of(sent, 2)) == sent


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_unknown_and_missing_keys_are_refused_by_name(shape: type[Any]) -> None:
    table = json.loads(text_of(filled(shape)))
    with pytest.raises(BorderError, match=f"{shape.__name__} has no field 'later'"):
        request_of(shape, json.dumps(table | {"later": 1}))
    for field in fields(shape):
        rest = {name: value for name, value in table.items() if name != field.name}
        if field.default is MISSING and field.default_factory is MISSING:
            with pytest.raises(BorderError, match=f"{shape.__name__} lacks the field '{field.name}'"):
                request_of(shape, json.dumps(rest))
        else:
            assert request_of(shape, json.dumps(rest)) is not None


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_value_of_another_type_is_refused_by_its_place(shape: type[Any]) -> None:
    table = json.loads(text_of(filled(shape)))
    for field in fields(shape):
        if field.type == "Any":
            continue
        wrong: Any = 3 if "str" in str(field.type).split("[")[0] else "wrong"
        if field.type == "tuple[Any, ...]":
            wrong = {}
        with pytest.raises(BorderError, match=f"{shape.__name__}.{field.name}"):
            request_of(shape, json.dumps(table | {field.name: wrong}))


@pytest.mark.parametrize(
    ("shape", "change", "said"),
    [
        (LayoutRequest, {"types": ["a", 1]}, r"LayoutRequest.types\[1\] is 1, not str"),
        (LayoutRequest, {"timeout": True}, "LayoutRequest.timeout is true, not float"),
        (PointRequest, {"target": ["cuda", 90]}, "PointRequest.target is not a list of 3"),
        (PointRequest, {"surgery": {"skip": [["cse"]]}}, r"SurgeryRequest.skip\[0\] is not a list of 2"),
        (PointRequest, {"hints": {"x": "16"}}, r"PointRequest.hints\['x'\]"),
    ],
)
def test_a_wrong_value_inside_is_found(shape: type[Any], change: dict[str, Any], said: str) -> None:
    table = json.loads(text_of(filled(shape)))
    with pytest.raises(BorderError, match=said):
        request_of(shape, json.dumps(table | change))


@pytest.mark.parametrize("text", ["", "[1]", "{", "null"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BorderError):
        row_of(ReadyRow, text)


def test_a_refusal_stands_in_place_of_a_row() -> None:
    refusal = WorkerRefusal("option", "no backend has it", name="num_wraps", names=("num_warps",))
    with pytest.raises(RequestRefusedError, match="no backend has it") as caught:
        row_of(CompiledRow, refusal_text(refusal))
    assert caught.value.refusal == refusal


def test_an_omitted_surgery_is_none_and_not_an_empty_one() -> None:
    point_ = PointRequest(("cuda", 90, 32))
    assert request_of(PointRequest, text_of(point_)).surgery is None
    empty = replace(point_, surgery=SurgeryRequest())
    assert request_of(PointRequest, text_of(empty)).surgery == SurgeryRequest()


def test_each_command_has_a_request() -> None:
    commands = [shape.COMMAND for shape in ASKED]
    assert sorted(commands) == sorted(set(COMMANDS) - WITHOUT)


def test_the_old_python_reads_the_same_shapes() -> None:
    """Python 3.8 evaluates no annotation of these: whoever does finds `dict[str, int]` not subscriptable."""
    for name in ("border.py", "messages.py", "records.py"):
        text = (worker.FOLDER / name).read_text(encoding="utf-8")
        assert "from __future__ import annotations" in text
        assert "get_type_hints" not in text
        for newer in ("slots=", "kw_only=", "match "):
            assert f"dataclass(frozen=True, {newer}" not in text


# ------------------------------------------------------------- with a process


def started(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(worker.FOLDER), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, **more)


# `bindings` reads no request; `reduce` and `scripts` read lines of their input.
BY_ARGUMENT = [shape for shape in ASKED if shape.COMMAND not in ("bindings", "reduce", "scripts")]


@pytest.mark.slow
@pytest.mark.parametrize("shape", BY_ARGUMENT, ids=lambda shape: shape.COMMAND)
def test_each_command_refuses_a_request_of_another_shape(shape: type[Any], tmp_path: Path) -> None:
    text = json.dumps({"later": 1})
    file = tmp_path / "request.json"
    file.write_text(text, encoding="utf-8")
    by_text = shape.COMMAND in ("describe", "rehearse", "layout", "plugin", "cache-facts")
    words = [text if by_text else str(file), *(["script.py"] if shape.COMMAND == "check" else [])]
    done = started(shape.COMMAND, *words)
    assert done.returncode == 1
    assert f"BorderError: {shape.__name__} has no field 'later'" in done.stderr


@pytest.mark.slow
def test_a_compile_by_typed_rows(place: Path) -> None:
    file = request(place, point("p", "x"), point("bad", "raise"))
    assert isinstance(request_of(PointsRequest, file.read_bytes()), PointsRequest)
    assert preloaded.run(place, "compile", str(file)).returncode == 0
    head, rows = call.headed_results(place / "results.jsonl", CompileHead, CompiledRow)
    assert (head.triton, head.news.stand_ins) == ("9.9.9", {"torch": "kernel.py:1"})
    assert {row.id: row.status for row in rows} == {"p": "ok", "bad": "failed"}
    (row,) = (row for row in rows if row.id == "p")
    assert (place / "out" / row.stages["cubin"].path).read_bytes() == b"\x7fELF"
    assert row.stages["cubin"].size == 4


def test_a_refused_compile_has_its_reason(place: Path) -> None:
    assert preloaded.run(place, "compile", str(request(place, kernel="other"))).returncode == 1, "no points"
    file = request(place, point("p"), kernel="other")
    assert preloaded.run(place, "compile", str(file)).returncode == 2
    refusal = call.refusal_in(place / "results.jsonl")
    assert refusal
    assert (refusal.kind, refusal.names) == ("kernel", ("k",))
    with pytest.raises(UnansweredError, match="did not answer") as caught:
        call.headed_results(place / "results.jsonl", CompileHead, CompiledRow)
    assert caught.value.refusal == refusal


def test_an_interpreter_without_triton_says_so(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    asked = DescribeRequest("k.py", "k", False, (PointRequest(("cuda", 90, 32)),), (), {})
    with pytest.raises(UnansweredError) as caught:
        call.ask_one(Path(sys.executable), asked, DescribedRow, space, timeout=60)
    assert caught.value.refusal
    assert caught.value.refusal.kind == "triton"
    talk = call.Conversation(Path(sys.executable), "reduce", folder=tmp_path, change={})
    with pytest.raises(UnansweredError) as caught:
        talk.hear(ReadyRow)
    talk.close()
    assert caught.value.why == "this interpreter has no Triton"


def test_a_check_of_a_script(tmp_path: Path) -> None:
    script, result = tmp_path / "script.py", tmp_path / "result.json"
    script.write_text("out = [1.0]\nreference = [1.0]\n", encoding="utf-8")
    asked = CheckRequest("out", "reference", None, None, str(result))
    words = call.script(asked, tmp_path / "request.json")
    subprocess.run([sys.executable, *words, str(script)], check=True, capture_output=True, timeout=60)
    assert call.results(result, CheckedRow) == [CheckedRow("holds", "they are close")]
    assert call.results(tmp_path / "none", CheckedRow) == []


def test_a_program_that_the_worker_joins(tmp_path: Path) -> None:
    """A Triton without Proton: the worker notes why nothing is measured."""
    package = tmp_path / "triton"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    asked = ProfileRequest(str(tmp_path), (messages.ProfileSession("cupti", ""),))
    file = tmp_path / "request"
    file.write_text(text_of(asked), encoding="utf-8")
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(call.site(asked, file), encoding="utf-8")
    env = {"PYTHONPATH": f"{site}{os.pathsep}{tmp_path}"}
    subprocess.run([sys.executable, "-c", "import triton"], check=True, env=env, timeout=60)
    (row,) = call.noted(tmp_path, ProfiledRow, "*.json")
    assert row.session is None
    assert "ModuleNotFoundError" in row.refused[0]


def test_a_stage_without_triton_is_an_error_of_its_row(tmp_path: Path) -> None:
    names = {name: str(tmp_path / name) for name in ("file", "out", "result", "log")}
    asked = StageRequest(target=("cuda", 90, 32), options={}, of="ptx", stage="cubin", stand_ins=(), **names)
    file = tmp_path / "request.json"
    _, step = call.steps(Path(sys.executable), asked, file, env=(), phase="stage")
    file.write_text(text_of(asked), encoding="utf-8")
    subprocess.run(step.argv, check=True, timeout=60)
    (row,) = call.results(tmp_path / "result", StageRow)
    assert "ModuleNotFoundError" in row.error


def test_rows_of_another_version_are_an_error_with_their_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"error": "", "argv": [], "later": 1}\n', encoding="utf-8")
    with pytest.raises(FactError, match="cannot read the worker's rows") as caught:
        call.results(file, StageRow)
    assert "StageRow has no field 'later'" in str(caught.value.why)
    file.write_text("", encoding="utf-8")
    for _ in ("empty", "gone"):
        with pytest.raises(SmithError, match="the worker wrote no results"):
            call.headed_results(file, CompileHead, CompiledRow)
        file.unlink(missing_ok=True)
