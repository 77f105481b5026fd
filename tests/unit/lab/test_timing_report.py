"""Verdicts about measured times: on samples that are drawn."""

from __future__ import annotations

import pytest

from tests.unit.lab import timed
from tritonsmith.core.errors import SmithError, UndecidedError, UsageError
from tritonsmith.core.text import counted
from tritonsmith.lab import timing_report as report
from tritonsmith.lab.timing_report import KernelTimes

WRONG = {"buffer": "c_ptr", "elements": 3, "largest": 2.5, "scale": 4.0, "within": False}
NEAR = {"buffer": "c_ptr", "elements": 3, "largest": 0.001, "scale": 4.0, "within": True}


def _standings(result: KernelTimes) -> dict[str, str]:
    return {binary.label: binary.standing for binary in result.binaries}


@pytest.mark.parametrize("seed", range(8))
def test_the_same_code_twice_cannot_be_told_apart(seed: int) -> None:
    result = report.of_kernel(timed.row({"3.4.0": 0.2, "3.9.0": 0.2}, seed=seed), {})
    assert _standings(result) == {"3.4.0": "first", "3.9.0": "same"}
    assert result.binaries[1].words == "cannot be told apart"
    assert result.noise < 0.01


@pytest.mark.parametrize("seed", range(8))
def test_five_percent_are_seen_through_a_spread_of_one(seed: int) -> None:
    times = {"3.4.0": 0.2, "3.6.0": 0.21, "3.9.0": 0.19}
    result = report.of_kernel(timed.row(times, seed=seed), {})
    assert _standings(result) == {"3.4.0": "first", "3.6.0": "slower", "3.9.0": "faster"}
    slower = result.binaries[1].ratio
    # An interval of 95 % lies beside the truth once in twenty times.
    assert 1.04 < slower.low < slower.middle < slower.high < 1.06


def test_an_interval_has_the_truth_and_noise_is_no_finding() -> None:
    count = 60
    results = [
        report.of_kernel(timed.row({"a": 0.2, "b": 0.21, "c": 0.2}, seed=100 + seed), {})
        for seed in range(count)
    ]
    ratios = [result.binaries[1].ratio for result in results]
    assert sum(ratio.low <= 1.05 <= ratio.high for ratio in ratios) >= 0.88 * count
    assert sum(result.binaries[2].standing != "same" for result in results) <= 0.05 * count


@pytest.mark.parametrize("drift", [0.01, -0.01])
def test_drift_hits_all_alike(drift: float) -> None:
    # Over the rounds the GPU gets 30 % slower, or faster: no ratio changes.
    result = report.of_kernel(timed.row({"3.4.0": 0.2, "3.9.0": 0.2, "dev": 0.21}, drift=drift), {})
    assert _standings(result) == {"3.4.0": "first", "3.9.0": "same", "dev": "slower"}
    assert result.binaries[0].quartiles[1] > 1.1 * result.binaries[0].quartiles[0]


def test_what_is_smaller_than_the_noise_of_the_first_with_itself_is_not_said() -> None:
    row = timed.row({"3.4.0": 0.2, "3.9.0": 0.202}, spread=0.001)
    assert _standings(report.of_kernel(row, {}))["3.9.0"] == "slower"
    # The same code, loaded again, differs as much.
    for samples in row["result"]["rounds"]:
        samples[""] = [1.01 * value for value in samples[""]]
    assert _standings(report.of_kernel(row, {}))["3.9.0"] == "same"


@pytest.mark.parametrize(("count", "low", "high"), [(5, 0, 4), (6, 0, 5), (9, 1, 7), (30, 9, 20)])
def test_the_interval_of_a_median_has_the_ranks_of_the_tables(count: int, low: int, high: int) -> None:
    # Conover, Practical Nonparametric Statistics: ranks 2 and 8 of nine, 10 and 21 of thirty.
    interval = report.median_of([float(value) for value in reversed(range(count))])
    assert (interval.low, interval.high) == (low, high)


def test_a_wrong_result_is_no_winner() -> None:
    row = timed.row({"3.4.0": 0.2, "3.9.0": 0.1, "dev": 0.1}, compared={"3.9.0": [WRONG], "dev": [NEAR]})
    result = report.of_kernel(row, {})
    assert _standings(result) == {"3.4.0": "first", "3.9.0": "wrong", "dev": "faster"}
    assert result.binaries[1].output == "c_ptr by 2.5 of 4"
    error = report.failure([result], ())
    assert isinstance(error, SmithError)
    assert error.exit_code == 1
    assert error.why == "matmul 3.9.0: c_ptr by 2.5 of 4"


def test_a_binary_that_fails_is_a_line_and_an_error() -> None:
    why = "first launch: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"
    result = report.of_kernel(timed.row({"3.4.0": 0.2}, failed={"3.9.0": why}), {})
    assert result.binaries[-1].why == why
    error = report.failure([result], ())
    assert error is not None
    assert error.exit_code == 1
    assert why in str(error)


@pytest.mark.parametrize(
    ("states", "why"),
    [
        ([{"sm_mhz": 1980, "reasons": ["thermal slowdown"]}] * 3, "the GPU slowed down: thermal slowdown"),
        (
            [{"sm_mhz": mhz, "reasons": []} for mhz in (345, 1980, 1980, 1500)],
            "the clock changed between 1500 and 1980 MHz",
        ),
        # The first is from before the rounds; at a power cap, clocks change all the time.
        ([{"sm_mhz": mhz, "reasons": ["power cap"]} for mhz in (345, 1500, 1950)], ""),
        ([{}], ""),
    ],
)
def test_an_unsteady_gpu_decides_nothing(states: list[dict[str, object]], why: str) -> None:
    result = report.of_kernel(timed.row({"3.4.0": 0.2, "3.9.0": 0.3}, states=states), {})
    assert result.unsure == why
    assert _standings(result)["3.9.0"] == ("undecided" if why else "slower")
    error = report.failure([result], ())
    assert isinstance(error, UndecidedError) if why else error is None


@pytest.mark.parametrize(
    ("milliseconds", "limit", "sure"),
    [
        (0.215, "time>+5%", True),
        (0.2101, "time>+5%", False),  # the interval has 5 %
        (0.204, "time>+5%", None),
        (0.215, "time>0.213", True),
        (0.19, "time>+0%", None),
        (0.2, "time>+0%", False),  # cannot be told apart: no growth is shown, and none is ruled out
    ],
)
def test_a_limit_is_broken_by_the_whole_interval_or_not_decided(
    milliseconds: float, limit: str, sure: bool | None
) -> None:
    results = [report.of_kernel(timed.row({"3.4.0": 0.2, "3.9.0": milliseconds}), {})]
    broken = list(report.violations(results, report.parse_limits(limit)))
    assert [each.sure for each in broken] == ([] if sure is None else [sure])
    error = report.failure(results, broken)
    codes = {True: 1, False: 5}
    assert (error.exit_code if error else None) == (None if sure is None else codes[sure])


@pytest.mark.parametrize("text", ["registers>+5%", "ptx contains ld", "time>5%", "tim>+5%"])
def test_a_limit_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        report.parse_limits(text)


def test_the_config_that_was_tuned_is_judged_by_rounds_that_did_not_choose_it() -> None:
    times = {
        "3.4.0 BLOCK=64": 0.20,
        "3.4.0 BLOCK=128": 0.22,
        "3.9.0 BLOCK=64": 0.25,
        "3.9.0 BLOCK=128": 0.20,
    }
    result = report.of_kernel(timed.row(times), {})
    before, after = report.tuned(result)
    assert (before.best.label, before.standing) == ("3.4.0 BLOCK=64", "same")
    assert (after.tuned.label, after.best.label) == ("3.9.0 BLOCK=64", "3.9.0 BLOCK=128")
    assert after.standing == "slower"
    assert 1.23 < after.gain.low < after.gain.high < 1.27
    text = "\n".join(map(str, (each.title for each in report.tables_of([result]))))
    assert "matmul: configs" in text


def test_a_tuned_config_that_does_not_run_any_more_is_said() -> None:
    times = {"3.4.0 BLOCK=64": 0.20, "3.4.0 BLOCK=128": 0.22, "3.9.0 BLOCK=128": 0.21}
    failed = {"3.9.0 BLOCK=64": "no binary: error: no such layout"}
    result = report.of_kernel(timed.row(times, failed=failed), {})
    _, after = report.tuned(result)
    assert (after.tuned.label, after.standing) == ("3.9.0 BLOCK=64", "failed")
    assert "does not run" in str([grid.rows for grid in report.tables_of([result])])


def test_of_many_equal_configs_the_luckiest_is_no_gain() -> None:
    times = {f"{triton} BLOCK={block}": 0.2 for triton in ("3.4.0", "3.9.0") for block in range(20)}
    for seed in range(5):
        _, after = report.tuned(report.of_kernel(timed.row(times, seed=seed), {}))
        assert after.standing == "same"


def test_without_a_sweep_nothing_was_tuned() -> None:
    assert report.tuned(report.of_kernel(timed.row({"3.4.0": 0.2, "3.9.0": 0.2}), {})) == []


def test_a_config_that_cannot_be_launched_is_no_finding_of_a_sweep() -> None:
    times = {"3.4.0 BLOCK=64": 0.2, "3.4.0 BLOCK=128": 0.3}
    failed = {"3.4.0 BLOCK=256": "it needs 300000 bytes of shared memory, and a block has 232448"}
    assert report.failure([report.of_kernel(timed.row(times, failed=failed), {})], ()) is None


def test_notes_say_what_limits_a_comparison() -> None:
    outputs = {"written": [], "empty": [], "steady": False, "adds": True}
    row = timed.row({"3.4.0": 0.2}, states=[{}], outputs=outputs)
    row["result"]["restored"] = True
    assert report.of_kernel(row, {}).notes == (
        "clocks and throttling are not known: there is no NVML",
        "the kernel wrote nothing, so that no output was compared",
        "the first binary writes other bits each time",
        "the kernel adds to its outputs, which are restored before each launch",
    )


def test_the_json_has_all_that_the_table_has() -> None:
    times = {"kernels": [timed.row({"3.4.0": 0.2, "3.9.0": 0.3})], "method": {"seed": 0}}
    results = report.read(times, {"matmul": {"3.9.0": {"registers_per_thread": 255}, "3.4.0": {}}})
    content = report.as_json(results, (), times)
    (kernel,) = content["kernels"]
    # In the order of the plan, the first in front.
    assert [row["label"] for row in kernel["binaries"]] == ["3.4.0", "3.9.0"]
    assert kernel["binaries"][1]["figures"] == {"registers_per_thread": 255}
    assert kernel["binaries"][1]["standing"] == "slower"
    assert len(kernel["binaries"][1]["rounds_ms"]) == 30
    assert content["device"]["name"] == "NVIDIA H200"
    assert counted(len(content["violations"]), "violation") == "0 violations"


@pytest.mark.parametrize(
    "change",
    [
        {"result": {"rounds": [{"a": [1.0]}], "first": "b"}},
        {"result": {"rounds": [{"a": "x", "": [1.0]}], "first": "a"}},
        {"result": {"rounds": [{"a": [0.0], "": [0.0]}] * 3, "first": "a"}},
        {"result": [1]},
        {"failed": 3},
        {"compared": {"3.4.0": [{"within": True}]}},
    ],
)
def test_malformed_times_are_an_error_and_no_traceback(change: dict[str, object]) -> None:
    row = {**timed.row({"3.4.0": 0.2, "3.9.0": 0.3}), **change}
    with pytest.raises(SmithError, match="malformed"):
        report.read({"kernels": [row]}, {})


def test_nothing_measured_is_an_error() -> None:
    row = {"name": "matmul", "failed": {"3.9.0": "no"}, "error": "cuModuleLoadData: CUDA_ERROR_NO_BINARY"}
    with pytest.raises(SmithError, match="nothing was measured"):
        report.require_any([report.of_kernel(row, {"3.9.0": {}})])
