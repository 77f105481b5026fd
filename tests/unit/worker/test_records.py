"""Classes of messages behave as frozen dataclasses."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from tritonsmith.worker import messages, records

_POINT: dict[str, Any] = {"target": ("cuda", 90, 32), "id": "p"}
_CLASSES = [
    kind for kind in vars(messages).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)
]


def test_values_are_given_by_place_or_by_name_and_may_have_defaults() -> None:
    point = messages.PointRequest(("cuda", 90, 32), id="p")
    assert (point.target, point.id, point.options, point.surgery) == (("cuda", 90, 32), "p", {}, None)
    assert point.options is not messages.PointRequest(**_POINT).options  # a factory is called for each
    assert repr(point).startswith("PointRequest(target=('cuda', 90, 32), id='p', options={}, ")


@pytest.mark.parametrize(
    ("values", "named", "error"),
    [
        ((), {}, "PointRequest lacks 'target'"),
        ((), {**_POINT, "grid": 1}, "PointRequest has no 'grid', or has it twice"),
        ((("cuda", 90, 32),), _POINT, "PointRequest has no 'target', or has it twice"),
        (range(9), {}, "PointRequest takes 8 values, not 9"),
    ],
)
def test_wrong_values_are_refused(values: Any, named: dict[str, Any], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        messages.PointRequest(*values, **named)


def test_records_are_equal_by_class_and_values_and_cannot_change() -> None:
    one, same = messages.ConfigRow({"B": 1}, {}), messages.ConfigRow({"B": 1}, {})
    assert one == same
    assert one != messages.ConfigRow({"B": 2}, {})
    other: object = messages.SurgeryRequest()
    assert one != other
    assert hash(messages.SurgeryRequest()) == hash(messages.SurgeryRequest(skip=()))
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"ConfigRow\.values cannot change"):
        one.values = {}  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.values
    assert dataclasses.replace(one, values={"B": 3}) == messages.ConfigRow({"B": 3}, {})


def test_records_are_copied_as_multiprocessing_does_it() -> None:
    point = messages.PointRequest(**_POINT)
    assert copy.deepcopy(point) == point


@pytest.mark.parametrize("kind", _CLASSES, ids=lambda kind: kind.__name__)
def test_every_message_is_made_by_the_shared_methods(kind: type) -> None:
    assert kind.__init__ is records._initialize  # type: ignore[misc]
