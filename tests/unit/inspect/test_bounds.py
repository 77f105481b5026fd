"""`kernel.lint --bounds`: findings with their lines of Python, the verdict, and the exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.check.test_bounds import text_of
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Point
from tritonsmith.core.errors import EXIT_UNDECIDED, UsageError
from tritonsmith.inspect import bounds
from tritonsmith.inspect.bounds import CapturedSizes, PointBounds
from tritonsmith.inspect.lint import run as lint_run
from tritonsmith.inspect.lint.run import LintResult

pytestmark = pytest.mark.unit

_KERNEL = """\
def kernel(x_ptr, stride, n_cols):
    row = tl.program_id(0)
    cols = tl.arange(0, 1024)
    tl.store(x_ptr + row * stride + cols, 0.0, mask=cols < n_cols)
"""


def _point() -> Point:
    signature = {"x_ptr": "*fp16", "stride": "i32", "n_cols": "i32", "BLOCK": "constexpr"}
    return Point("cuda-90-32", "cuda:90:32", signature, {"BLOCK": 1024}, {}, {}, "ok", 1.0)


def _answer(
    folder: Path, name: str = "liger_1335", launched: CapturedSizes | None = None, **sizes: int
) -> PointBounds:
    """What is found in a kernel whose product is in line 4, and whose program id is in line 2."""
    (folder / "kernel.py").write_text(_KERNEL)
    places = {"tt.get_program_id": 2, "arith.muli": 4, "tt.store": 4, "tt.load": 3}
    lines = []
    for line in text_of(name).splitlines():
        number = next((number for word, number in places.items() if f'"{word}"' in line), 0)
        lines.append(f"{line} loc(#loc{number})" if number else line)
    locations = [f'#loc{number} = loc("{folder}/kernel.py":{number}:5)' for number in (2, 3, 4)]
    return bounds.of_point("kernel", _point(), "\n".join((*locations, *lines)), sizes, launched)


def test_a_finding_has_its_line_its_words_and_a_remedy(tmp_path: Path) -> None:
    (finding,) = _answer(tmp_path).findings
    assert finding.origin is not None
    assert (finding.origin.number, finding.expression) == (4, "stride * tl.program_id(0)")
    assert finding.source.startswith("tl.store(x_ptr + row * stride")
    assert finding.remedy == "tl.program_id(0).to(tl.int64) in line 2"
    assert finding.reached == ("store in line 4",)


def test_the_report_says_from_which_size_and_with_which_launch(tmp_path: Path) -> None:
    launched = CapturedSizes(((64, 1, 1), (512, 1, 1)))
    text = "\n".join(bounds.lines([_answer(tmp_path, launched=launched, stride=32768)]))
    assert "kernel.py:4: overflows from 65,537 programs along axis 0 on: stride * tl.program_id(0)" in text
    assert "program (65536, 0, 0) with stride = 32,768" in text
    assert "at most 512 programs there: 128 times less" in text
    assert text.endswith("1 offset of 32 bits shown to overflow in 1 compile")


def test_the_sizes_of_captured_launches_are_the_usual_ones(tmp_path: Path) -> None:
    def entry(kernel: str, grid: int, **largest: int) -> ListedKernel:
        return ListedKernel("", "kernel.py", kernel, "", grids=((grid, 1, 1),), largest=largest)

    entries = [entry("kernel", 1024, stride=8192), entry("other", 1 << 30), entry("kernel", 64, stride=512)]
    launched = bounds.captured(entries)["kernel"]
    answer = _answer(tmp_path, launched=launched)
    (finding,) = answer.findings
    assert finding.overflow.witness is not None
    assert finding.overflow.witness.arguments["stride"] == 8192
    text = "\n".join(bounds.lines([answer]))
    assert "overflows from 262,145 programs along axis 0 on" in text
    assert "the captured launches have at most 1,024 programs there: 256 times less" in text
    assert bounds.as_json([answer])["compiles"][0]["findings"][0]["captured"] == 1024


def test_a_captured_size_beyond_the_threshold_is_named(tmp_path: Path) -> None:
    launched = CapturedSizes(((1 << 20, 1, 1),), {"stride": 4096})
    text = "\n".join(bounds.lines([_answer(tmp_path, launched=launched)]))
    assert "captured launches have up to 1,048,576 programs there: they overflow" in text
    seqlen = CapturedSizes((), {"seqlen": 8192})
    text = "\n".join(bounds.lines([_answer(tmp_path, "mamba_987", seqlen)]))
    assert "the captured launches have at most seqlen = 8,192: 64 times less" in text


def test_only_what_is_shown_fails(tmp_path: Path) -> None:
    error = bounds.failure([_answer(tmp_path)])
    assert error is not None
    assert error.why == "kernel kernel.py:4: from 524,289 programs along axis 0 on"
    may = _answer(tmp_path, "vllm_53028")
    assert bounds.failure([may]) is None
    assert bounds.verdict([may]) == "1 offset that may overflow in 1 compile"
    nothing = _answer(tmp_path, "liger_1335_wide")
    assert bounds.failure([nothing]) is None
    assert bounds.verdict([nothing]) == "no offset of 32 bits overflows in 1 compile"


def test_what_cannot_be_read_is_not_known() -> None:
    answer = bounds.of_point("kernel", _point(), "", {})
    assert answer.unknown == "there is no ttir that this Triton can print"
    assert bounds.verdict([answer]) == "nothing is known about 1 compile"
    error = bounds.failure([answer])
    assert error
    assert error.exit_code == EXIT_UNDECIDED
    assert bounds.of_point("kernel", _point(), "nonsense", {}).unknown


def test_json_has_the_witness(tmp_path: Path) -> None:
    (row,) = bounds.as_json([_answer(tmp_path)])["compiles"][0]["findings"]
    assert (row["verdict"], row["line"], row["in_block"]) == ("does", 4, False)
    assert row["witness"]["from"] == 524289
    assert row["witness"]["arguments"] == {"stride": 4096, "n_cols": 1024}


def test_sizes_are_numbers_of_arguments() -> None:
    assert bounds.parse_sizes(["n=4096", "stride=32_768", "m=1,024"]) == {
        "n": 4096,
        "stride": 32768,
        "m": 1024,
    }
    for text in ("n", "n=", "n=-1", "=4", "n=1e6", "n=1,2", "n=1_2", "n=4096,5", "n=1,024,m=3"):
        with pytest.raises(UsageError, match="--size cannot be"):
            bounds.parse_sizes([text])


def test_lint_has_what_is_shown_if_its_code_is_named(tmp_path: Path) -> None:
    answers = [_answer(tmp_path), _answer(tmp_path, "vllm_53028"), bounds.of_point("other", _point(), "", {})]
    result = lint_run.with_bounds(LintResult(3, (), (), {}), answers, ["int32-overflow"])
    (finding,) = result.findings
    assert finding.rule.code == "int32-overflow"
    assert finding.what == "stride * tl.program_id(0) overflows from 524,289 programs along axis 0 on"
    assert finding.origin is not None
    assert finding.origin.number == 4
    assert [rule.kernel for rule in result.unchecked] == ["other"]
    error = lint_run.failure(result, lint_run.parse_fail_on("int32-overflow"))
    assert error is not None


def test_an_access_outside_of_a_tensor_is_reported_with_its_launch_and_fails(tmp_path: Path) -> None:
    answer = _answer(tmp_path, "unmasked")
    text = "\n".join(bounds.lines([answer]))
    assert "kernel.py:3: is outside of x_ptr: it has no mask; the store in line 4 compares with n\n" in text
    assert (
        "witness: program (1, 0, 0) of (2, 1, 1) with n = 1,025:"
        " element 2,047 of x_ptr, which has 1,025 by the mask of the store in line 4\n" in text
    )
    assert text.endswith(
        "no offset of 32 bits overflows, 1 access shown to be outside of a tensor in 1 compile"
    )
    error = bounds.failure([answer])
    assert error is not None
    assert error.what == "1 access is outside of a tensor"
    (row,) = bounds.as_json([answer])["compiles"][0]["findings"]
    assert (row["code"], row["verdict"], row["line"]) == ("outside-tensor", "does", 3)


def test_what_only_may_be_outside_does_not_fail(tmp_path: Path) -> None:
    answers = [_answer(tmp_path, name) for name in ("unmasked_input", "unlimited")]
    assert bounds.failure(answers[:1]) is None
    # With millions of programs, an id that nothing limits overflows, too.
    assert bounds.verdict(answers) == (
        "1 offset of 32 bits shown to overflow, 1 access that may be outside of a tensor,"
        " 1 program id that nothing limits in 2 compiles"
    )
    text = "\n".join(bounds.lines(answers))
    assert "may be outside of x_ptr: it has no mask; the store in line 4 compares with n" in text
    assert "no mask, comparison, quotient or loop limits tl.program_id(0), whose blocks have 1,024" in text
    # Without proof there is no finding of lint, but that nothing limits an id is a fact of the text.
    result = lint_run.with_bounds(LintResult(2, (), (), {}), answers)
    assert [finding.rule.code for finding in result.findings] == ["int32-overflow", "unlimited-program"]
    (finding,) = lint_run.with_bounds(LintResult(2, (), (), {}), answers, ["unlimited-program"]).findings
    assert finding.what.startswith("may be outside of its tensor")


def test_a_size_has_to_fit_its_argument() -> None:
    bounds._require_names({"stride": 2**31 - 1}, [_point()])
    with pytest.raises(UsageError, match="stride is i32, which cannot be 5,000,000,000"):
        bounds._require_names({"stride": 5_000_000_000}, [_point()])
