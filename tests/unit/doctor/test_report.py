from __future__ import annotations

import io
import shlex
from dataclasses import replace

from rich.console import Console, RenderableType

from tests.unit.doctor.test_finding import ALL
from tritonsmith.doctor import registry, report
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.finding import Finding


def lines(what: RenderableType, width: int = 200) -> list[str]:
    """What is seen of it, without the blanks at the ends of lines."""
    file = io.StringIO()
    Console(file=file, width=width, emoji=False, highlight=False, soft_wrap=True).print(what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_counts_have_an_order_of_their_own() -> None:
    assert report.counts(tuple(reversed(ALL))) == (
        "doctor: 1 ok, 1 not applicable, 1 note, 1 warning, 1 error, 1 crashed"
    )
    assert report.counts(ALL[1:2] * 3) == "doctor: 3 ok"
    assert report.counts(()) == "doctor: nothing was checked"


def test_the_summary_lists_what_is_wrong() -> None:
    assert lines(report.summary(ALL))[1:] == [
        "  warning: machine.memory: 2 GiB. or [x]",
        "  error: builds.llvm: a link to nowhere. link it; do this; then that",
        "  crashed: builds.triton: KeyError: 'x'.",
    ]


def test_the_screen_says_what_is_well_in_one_line_and_what_is_not_with_what_to_do() -> None:
    assert lines(report.screen(ALL)) == [
        "",
        "builds",
        "  · cmake-paths       nothing to look at",
        "",
        "tools",
        "  ✓ cmake             3.31  /usr/bin/cmake",
        "  i ccache            not installed",
        "                      slow",
        "                      fix: install it",
        "",
        "machine",
        "  ! memory            2 GiB",
        "                      killed",
        "                      fix: or [x]",
        "                      more: invoke doctor --explain machine.memory",
        "",
        "builds",
        "  ✗ llvm              a link to nowhere  /src",
        "                      no build",
        "                      fix: link it",
        "                      $ do this",
        "                      $ then that",
        "                      more: invoke doctor --explain builds.llvm",
        "  ✗ triton            KeyError: 'x'",
        "                      more: invoke doctor --explain builds.triton",
    ]


def test_a_long_path_is_not_broken_in_a_narrow_window() -> None:
    path = "/home/me/a folder/" + "x" * 200
    shown = lines(report.screen((Finding("ok", "seen", path, check="tools.cmake"),)), width=40)
    assert shown[-1] == " " * 20 + "  " + path


def test_long_lines_wrap_below_the_finding() -> None:
    command = (
        "invoke setup-mlir --env debug --llvm-dir '/opt/a folder/llvm-19' --any-commit --provider system"
    )
    found = Finding("error", "a wheel " * 12, "/src", "words " * 20, commands=(command,), check="tools.cmake")
    shown = lines(report.screen((found,)), width=80)
    assert all(len(line) <= 80 for line in shown)
    assert all(line.startswith(" " * 22) for line in shown[3:])
    begin = next(number for number, line in enumerate(shown) if "$ " in line)
    typed = "\n".join(shown[begin:-1]).strip().removeprefix("$ ").replace("\\\n", "")
    assert shlex.split(typed) == shlex.split(command)


def test_the_screen_of_nothing() -> None:
    assert lines(report.screen(())) == []


def test_the_listing_has_every_check() -> None:
    deep = Check("python.import", "whether it loads", lambda _: (), deep=True)
    shown = [line.split("  ") for line in lines(report.listing((*registry.ALL, deep)))]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in shown]
    assert all([check.id, check.title] in cells for check in registry.ALL if not check.deep)
    assert ["python.import", "--deep", "whether it loads"] in cells


def test_what_had_nothing_to_look_at_may_be_named_in_one_line() -> None:
    idle = Finding("not applicable", "no checkout", check="sources.pins")
    both = (Finding("ok", "fine", check="sources.llvm"), idle, replace(idle, check="sources.branches"))
    assert lines(report.screen(both, whole=False)) == [
        "",
        "sources",
        "  ✓ llvm              fine",
        "  · not applicable: pins, branches",
    ]
    assert "  · pins              no checkout" in lines(report.screen(both))
