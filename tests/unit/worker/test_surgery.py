"""The worker's surgery: which passes an operation adds, and what it says of those that are not there."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.worker import libtriton
from tritonsmith.worker.messages import SurgeryRequest
from tritonsmith.worker.surgery import CompileOperation, StoppedError, current, operating

PIPELINE = (
    ("passes.common.add_canonicalizer", "canonicalize"),
    ("passes.common.add_cse", "cse"),
    ("passes.ttgpuir.add_coalesce", "tritongpu-coalesce"),
    ("passes.common.add_canonicalizer", "canonicalize"),
)


def added(**wanted: Any) -> tuple[CompileOperation, list[str]]:
    """What a pass manager gets."""
    made: list[str] = []
    operation = CompileOperation(SurgeryRequest(**wanted))
    for path, name in PIPELINE:
        operation.add(path, [name], lambda name=name: made.append(name))  # type: ignore[misc]
    return operation, made


@pytest.mark.parametrize("name", ["canonicalize", "add_canonicalizer", "passes.common.add_canonicalizer"])
def test_a_pass_has_the_name_of_mlir_and_those_of_python(name: str) -> None:
    operation, made = added(skip=((name, 0),))
    assert made == ["cse", "tritongpu-coalesce"]
    assert not operation.unmet()
    assert added(skip=((name, 2),))[1] == ["canonicalize", "cse", "tritongpu-coalesce"]


def test_a_pass_runs_twice() -> None:
    operation, made = added(repeat=(("cse", 1),))
    assert made == ["canonicalize", "cse", "cse", "tritongpu-coalesce", "canonicalize"]
    assert [one["times"] for one in operation.passes] == [1, 2, 1, 1]


def test_after_the_last_pass_the_compile_ends_with_its_ir() -> None:
    operation, made = added(stop=(("cse", 1),))
    assert made == ["canonicalize", "cse"]
    operation.stage = "ttgir"
    with pytest.raises(StoppedError, match="the compile ends after cse"):
        operation.ran("module {}")
    assert operation.stages == {"ttgir": "module {}"}


def test_runs_are_numbered_as_a_dump_counts_them() -> None:
    operation, _ = added()
    assert [(one["pass"], one["number"]) for one in operation.passes][-1] == ("canonicalize", 2)


def test_what_is_not_there_is_told() -> None:
    assert "did you mean tritongpu-coalesce" in added(skip=(("tritongpu-coalese", 0),))[0].unmet()
    assert (
        "reaches canonicalize 2 times: there is no canonicalize#3"
        in added(skip=(("canonicalize", 3),))[0].unmet()
    )
    assert "reaches TritonGPUCoalesce 1 time: there" in added(skip=(("TritonGPUCoalesce", 2),))[0].unmet()
    assert "it has canonicalize, cse, tritongpu-coalesce" in added(skip=(("zzz", 0),))[0].unmet()
    unreached = added(stop=(("canonicalize", 1),), skip=(("cse", 0),))[0].unmet()
    assert unreached == "this compile ends after canonicalize, before it comes to cse"


def test_options_of_ptxas_come_first_and_are_missed_where_it_does_not_run() -> None:
    operation = CompileOperation(SurgeryRequest(ptxas=("-O1", "a b")))
    assert "ptxas did not run" in operation.unmet()
    assert operation.assembling(["/bin/ptxas", "k.ptx", "-o", "k.o"])[-2:] == ["-O1", "a b"]
    line = operation.assembling("/bin/ptxas k.ptx -o k.o 2> log")
    assert line == "/bin/ptxas -O1 'a b' k.ptx -o k.o 2> log"
    assert not operation.unmet()


def test_caches_tell_operations_apart() -> None:
    keys = {CompileOperation(SurgeryRequest(skip=(("cse", number),))).key() for number in (0, 1, 2)}
    assert len(keys) == 3


def test_an_operation_is_of_one_thread_and_ends() -> None:
    operation = CompileOperation(SurgeryRequest())
    with operating(operation):
        assert current() is operation
        with operating(None):
            assert current() is None
    assert current() is None


def test_the_address_of_a_symbol_is_in_its_library() -> None:
    mapped = Path("/proc/self/maps").read_text().splitlines()
    program = next((line.split()[-1] for line in mapped if "/libpython3." in line), sys.executable)
    found = libtriton.symbols(program, (b"PyList_New", rb"PyList_\w+_no_such", b"PyDict_New"))
    here = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name.decode()), ctypes.c_void_p).value or 0
        for name in found
    }
    assert set(found) == {b"PyList_New", b"PyDict_New"}
    assert len({here[name] - found[name] for name in found}) == 1
