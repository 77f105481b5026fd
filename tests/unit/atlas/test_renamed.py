"""Names of other versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tritonsmith.atlas import answer, command
from tritonsmith.core.errors import SmithError


def test_a_dialect_takes_what_it_had_along_and_nothing_that_came_later() -> None:
    assert answer.other_names("op", "ttg.convert_layout") == (
        "triton_gpu.convert_layout until 2024-11-27 (6d3ed0b911)",
    )
    assert answer.other_names("op", "triton_gpu.convert_layout") == (
        "ttg.convert_layout since 2024-11-27 (6d3ed0b911)",
    )
    assert answer.other_names("op", "ttg.warp_specialize") == ()


def test_a_chain_of_names_oldest_first() -> None:
    assert answer.other_names("attribute", "#ttg.nvidia_mma") == (
        "#triton_gpu.mma until 2023-12-11 (539fbe5049)",
        "#triton_gpu.nvidia_mma until 2024-11-27 (6d3ed0b911)",
    )


def test_a_name_that_came_back_is_no_other_name_of_itself() -> None:
    name = "insert-instruction-sched-hints"
    assert not any(text.startswith(f"{name} ") for text in answer.other_names("pass", name))


def test_what_stayed_less_than_most_of_it_is_said() -> None:
    (text,) = answer.other_names("pass", "triton-nvidia-optimize-tmem-subtiling")
    assert "if it is the same: 80% of its definition stayed" in text


def test_an_old_name_leads_to_what_this_checkout_calls_it(tmp_path: Path) -> None:
    index = command.index_of(plant(tmp_path), [])
    found = command.explain(index, "triton_gpu.convert_layout")
    assert found.name == "ttg.convert_layout"
    assert found.notes[0] == "triton_gpu.convert_layout is called ttg.convert_layout in this checkout"
    with pytest.raises(SmithError) as caught:
        command.explain(index, "tt.experimental_join")
    assert "other versions of Triton call it tt.join" in str(caught.value.why)
