"""`explain` without sources, by the newest wheel: what it says is what Python imports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import LLVM, Smith, capture, require_llvm
from tritonsmith.core import configs


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    return with_wheel.beside(tmp_path_factory.mktemp("no sources"))


def answer(smith: Smith, *argv: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(smith("explain", *argv, "--env", "wheel", "--json").out)
    return made


def test_a_function_of_the_language_is_where_python_has_it(smith: Smith) -> None:
    found = answer(smith, "tl.dot")
    (place,) = found["places"]["defined"]
    python = smith.env("wheel") / "venv" / "bin" / "python"
    unwrapped = "import inspect, triton.language as tl; c = inspect.unwrap(tl.dot).__code__"
    code = f"{unwrapped}; print(c.co_filename, c.co_firstlineno)"
    file, _, line = capture(python, "-c", code).strip().rpartition(" ")
    assert Path(found["root"], place["file"]).resolve() == Path(file).resolve()
    decorators = place["line"] - int(line)
    assert 0 <= decorators <= 5


@pytest.mark.slow
def test_each_listed_pass_is_answered(smith: Smith) -> None:
    listed = json.loads(smith("explain", "--list", "passes", "--env", "wheel", "--json").out)["passes"]
    names = {one["name"] for one in listed}
    assert {"tritongpu-coalesce", "tritongpu-pipeline"} <= names
    found = answer(smith, "tritongpu-coalesce")
    assert found["kind"] == "pass"
    assert Path(found["root"], found["places"]["defined"][0]["file"]).is_file()


@pytest.mark.slow
def test_an_option_a_variable_and_a_word_that_is_nothing(smith: Smith) -> None:
    assert answer(smith, "num_stages")["kind"] == "option"
    assert answer(smith, "TRITON_KERNEL_DUMP")["kind"] == "variable"
    assert "tl.dot" in smith("explain", "tl.dott", "--env", "wheel", code=1).error


@pytest.mark.parametrize("name", configs.load("source-map")["mlir-passes"])
def test_the_passes_of_mlir_do_what_mlir_says(name: str) -> None:
    require_llvm()
    folder = LLVM / "include" / "mlir"
    text = "".join((folder / part / "Passes.td").read_text() for part in ("Transforms", "Conversion"))
    _, _, body = text.partition(f'Pass<"{name}"')
    summary = re.search(r'let summary =\s*((?:"[^"]*"\s*)+);', body)
    assert summary
    said = "".join(re.findall(r'"([^"]*)"', summary[1])).removesuffix(".")
    assert configs.load("source-map")["mlir-passes"][name]["about"].lower().startswith(said.lower())
