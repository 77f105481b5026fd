"""Reports on time, as Triton 3.4 and 3.9 print them."""

from __future__ import annotations

from tritonsmith.compiler.dump import pass_runs

LINE = "===" + "-" * 73 + "===\n"
NEW = (
    f"{LINE}                         ... Execution time report ...\n{LINE}"
    "  Total Execution Time: 0.2595 seconds\n\n"
    "  ----Wall Time----  ----Name----\n"
    "    0.1002 ( 38.6%)  InlinerPass\n"
    "    0.0001 (  0.0%)    (A) CallGraph\n"
    "    0.0833 ( 32.1%)  'tt.func' Pipeline\n"
    "    0.0010 (  0.4%)    CanonicalizerPass\n"
    "    0.0004 (  0.2%)  CanonicalizerPass\n"
    "    0.0003 (  0.1%)  CSEPass\n"
    "    0.0735 ( 28.3%)  Rest\n"
    "    0.2595 (100.0%)  Total\n"
)
OLD = (
    f"{LINE}                         ... Execution time report ...\n{LINE}"
    "  Total Execution Time: 0.0653 seconds\n\n"
    "  ----User Time----  ----Wall Time----  ----Name----\n"
    "    0.0468 (  3.7%)    0.0469 (  4.5%)  Inliner\n"
    "    0.0002 (  0.0%)    0.0003 (  0.0%)    Canonicalizer\n"
    "    0.0653 (100.0%)    0.0653 (100.0%)  Total\n"
)
LLVM = (
    f"{LINE}                          Pass execution timing report\n{LINE}"
    "  Total Execution Time: 0.0020 seconds (0.0020 wall clock)\n\n"
    "   ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---\n"
    "   0.0005 ( 40.4%)   0.0001 ( 12.1%)   0.0006 ( 29.1%)   0.0007 ( 29.5%)  Global Value Numbering #2\n"
    "   0.0000 (  0.0%)   0.0002 ( 27.3%)   0.0002 ( 10.9%)   0.0003 ( 11.1%)  Global Value Numbering\n"
    "   0.0000 (  0.0%)   0.0002 ( 27.3%)   0.0002 ( 10.9%)   0.0004 ( 11.1%)  InstCombinePass\n"
    "   0.0020 (100.0%)   0.0020 (100.0%)   0.0020 (100.0%)   0.0020 (100.0%)  Total\n\n"
)


def test_rows_are_passes_with_their_wall_time() -> None:
    (report,) = pass_runs.reports(NEW)
    assert [(row.name, row.depth, row.seconds) for row in report.rows] == [
        ("InlinerPass", 0, 0.1002),
        ("CanonicalizerPass", 1, 0.0010),
        ("CanonicalizerPass", 0, 0.0004),
        ("CSEPass", 0, 0.0003),
    ]


def test_older_reports_have_two_columns() -> None:
    (report,) = pass_runs.reports(OLD)
    assert [(row.name, row.depth, row.seconds) for row in report.rows] == [
        ("Inliner", 0, 0.0469),
        ("Canonicalizer", 1, 0.0003),
    ]


def test_passes_inside_another_are_told_from_those_of_the_pipeline() -> None:
    (report,) = pass_runs.reports(NEW)
    inner = [("CanonicalizerPass", False)] * 2
    outer = [(name, True) for name in ("CanonicalizerPass", "CSEPass", "TritonGPUCoalesce")]
    found, end = pass_runs.matched(report.rows, [("InlinerPass", True), *inner, *outer], 0)
    assert end == 5
    assert found == {0: 0.1002, 1: 0.0010, 3: 0.0004, 4: 0.0003}


def test_the_nth_pass_of_a_name_is_llvms_number() -> None:
    (report,) = pass_runs.reports(LLVM)
    names = ["Global Value Numbering", "InstCombinePass", "Global Value Numbering", "InstCombinePass"]
    assert pass_runs.nth(report, names) == {
        0: 0.0003,
        2: 0.0007,
    }  # one row for two InstCombines tells of neither


def test_reports_are_no_output_of_the_program() -> None:
    assert pass_runs.without(f"before\n{NEW}{LLVM}{OLD}after\n".encode()).split() == [b"before", b"after"]


def test_a_report_that_is_cut_is_no_report() -> None:
    for cut in range(0, len(NEW), 7):
        list(pass_runs.reports(NEW[:cut]))
    assert not [*pass_runs.reports(NEW[:150])]
