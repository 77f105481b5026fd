"""The memory that Triton's interpreter gets: bytes at addresses, masks, atomics one element after another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tritonsmith.worker.interpreted_memory import InterpretedMemory, MemoryModule

pytestmark = pytest.mark.unit

FAR = 3 << 40
VALUES = np.array([1.5, -2.0, 3.25, 8.0], np.float32)


def memory_of(values: np.ndarray[Any, Any], start: int = FAR) -> tuple[InterpretedMemory, MemoryModule]:
    memory = InterpretedMemory([(start, values.tobytes().hex())])
    return memory, MemoryModule(SimpleNamespace(fma_fp32="the rest"), memory)


def pointers(*places: int, size: int = 4) -> np.ndarray[Any, Any]:
    return np.array([FAR + place * size for place in places], np.uint64)


def yes(*which: int) -> np.ndarray[Any, Any]:
    return np.array(which, bool)


def test_masked_elements_are_others() -> None:
    memory, module = memory_of(VALUES)
    found = module.load(pointers(0, 3, 9), yes(1, 1, 0), np.float32(7), np.float32)
    assert found.tolist() == [1.5, 8.0, 7.0]
    assert found.dtype == np.float32
    assert memory.outside == 0
    assert module.fma_fp32 == "the rest"


def test_a_mask_may_be_of_integers() -> None:
    memory, module = memory_of(VALUES)
    ones = np.array([1, 0], np.int8)
    assert module.load(pointers(3, 1), ones, np.float32(7), np.float32).tolist() == [8.0, 7.0]
    module.store(pointers(3, 1), np.array([5, 6], np.float32), ones)
    assert len(list(memory.written())) == 1


def test_what_nobody_gave_is_counted() -> None:
    memory, module = memory_of(VALUES)
    assert module.load(pointers(4), yes(1), np.float32(0), np.float32).tolist() == [0]
    assert memory.outside == 4


def test_what_is_written_is_read_and_told_in_runs() -> None:
    memory, module = memory_of(VALUES)
    module.store(pointers(1, 6, 7, 8), np.array([9, 10, 11, 12], np.float32), yes(1, 1, 1, 0))
    assert module.load(pointers(0, 1, 7), yes(1, 1, 1), np.float32(0), np.float32).tolist() == [1.5, 9, 11]
    assert list(memory.written()) == [
        (FAR + 4, np.array([9], np.float32).tobytes().hex()),
        (FAR + 24, np.array([10, 11], np.float32).tobytes().hex()),
    ]
    assert memory.outside == 0


def test_of_two_elements_at_one_address_the_last_one_stays() -> None:
    memory, module = memory_of(VALUES)
    module.store(pointers(2, 2), np.array([5, 6], np.float32), yes(1, 1))
    assert list(memory.written()) == [(FAR + 8, np.array([6], np.float32).tobytes().hex())]


@pytest.mark.parametrize(
    ("name", "dtype", "start", "value", "after"),
    [
        ("ADD", np.int32, 5, -7, -2),
        ("FADD", np.float32, 0.5, 0.25, 0.75),
        ("MIN", np.int32, 5, -7, -7),
        ("UMIN", np.int32, 5, -7, 5),
        ("MAX", np.int32, 5, -7, 5),
        ("UMAX", np.int32, 5, -7, -7),
        ("AND", np.int32, 12, 10, 8),
        ("OR", np.int32, 12, 10, 14),
        ("XOR", np.int32, 12, 10, 6),
        ("XCHG", np.int32, 12, 10, 10),
    ],
)
def test_atomics_give_what_was_there(
    name: str, dtype: type[np.generic], start: float, value: float, after: float
) -> None:
    memory, module = memory_of(np.array([start, start], dtype))
    operation = SimpleNamespace(name=name)
    found = module.atomic_rmw(operation, pointers(0, 1), np.array([value], dtype), yes(1, 0), None)
    assert found.tolist() == [start, 0]
    assert list(memory.written()) == [(FAR, np.array([after], dtype).tobytes().hex())]


def test_atomics_to_one_address_come_one_after_another() -> None:
    _, module = memory_of(np.array([10], np.int32))
    at = pointers(0, 0, 0)
    found = module.atomic_rmw(
        SimpleNamespace(name="ADD"), at, np.array([1, 2, 3], np.int32), yes(1, 1, 1), None
    )
    assert found.tolist() == [10, 11, 13]


def test_bf16_is_no_integer_to_be_added() -> None:
    _, module = memory_of(np.array([0x3F80], np.uint16))
    with pytest.raises(ValueError, match="no atomic addition"):
        module.atomic_rmw(
            SimpleNamespace(name="FADD"), pointers(0), np.array([0x3F80], np.uint16), yes(1), None
        )


def test_compare_and_swap() -> None:
    memory, module = memory_of(np.array([4, 5], np.int32))
    found = module.atomic_cas(pointers(0, 1), np.array([4, 4], np.int32), np.array([8, 9], np.int32), None)
    assert found.tolist() == [4, 5]
    assert list(memory.written()) == [(FAR, np.array([8], np.int32).tobytes().hex())]
