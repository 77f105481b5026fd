"""The verdict of a rehearsal: its classes and groups, the lines on the screen, and the Markdown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invoke.context import Context
from invoke.exceptions import Exit
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.unit.lab.compare import compiler
from tests.unit.lab.compare.making import TTIR, point, written
from tests.unit.lab.compare.test_assessment import SAME, one, other, verdict
from tests.unit.lab.compare.test_thresholds import NVIDIA, pair
from tritonsmith.cli.tasks.compare import rehearse
from tritonsmith.compiler.manifest import Status
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import CommitSource, Triton
from tritonsmith.core import configs
from tritonsmith.core.plan import Write
from tritonsmith.lab import metrics, questions
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import rehearsal, rehearsal_report, thresholds
from tritonsmith.lab.compare.matching import Compared, Comparison, Pair, PairMember, Unpaired
from tritonsmith.lab.compare.rehearsal import Assessment, UpgradeRehearsal
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.metrics import Measured

GOLDEN = Path(__file__).parent / "golden"
SPILLS: Measured = {**NVIDIA, "spill_store_bytes": 8}
MORE = TTIR.replace("    tt.return", "    %b = arith.addi %a, %a : i32\n    tt.return")
MOST = MORE.replace("    tt.return", "    %c = arith.addi %b, %a : i32\n    tt.return")
OLD, NEW = (Triton(text, version=text) for text in ("3.7.0", "3.9.0"))
UPGRADE = UpgradeRehearsal(Path("/home/me/list/kernels.toml"), OLD, NEW, (), ())


def compiled(
    folder: Path,
    kernel: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    b: Measured = SPILLS,
    **more: object,
) -> Compared:
    """A kernel by both, with these texts of stages."""
    sides = [
        written(folder / kernel / side, [point()], texts=texts, **more)
        for side, texts in (("a", before), ("b", after))
    ]
    a, c = (PairMember(side, side.points[0]) for side in sides)
    size = before["ttir"].count("\n")
    return Compared(Pair(kernel, "cuda-90-32", a, c), {**NVIDIA, "ttir_operations": size}, b)


def crashed(kernel: str, error: str = "the compiler died: SIGSEGV", status: Status = "crashed") -> Compared:
    return Compared(pair(point(), point(status=status, error=error), kernel), NVIDIA, {})


def test_a_crash_is_worse_than_a_kernel_that_does_not_compile() -> None:
    made = verdict(
        other("refused", "ok", "failed"), other("slow", "ok", "timeout"), crashed("dies"), SAME,
        one("stuck", {**NVIDIA, "launch": "yes"}, {**NVIDIA, "launch": "no: shared 262144 > 232448 B"}),
    )  # fmt: skip
    assert [(row.kernel, row.finding, thresholds.explain(row)) for row in made.findings] == [
        ("dies", thresholds.CRASHES, "the compiler died: SIGSEGV"),
        ("refused", thresholds.COMPILES, "error: no"),
        ("slow", thresholds.COMPILES, "timeout: error: no"),
        ("stuck", thresholds.LAUNCHES, "shared 262144 > 232448 B"),
    ]


def test_all_classes_have_a_place_in_the_order() -> None:
    usual = [row.finding for row in thresholds.usual()]
    assert [*thresholds.LOST, *usual] == [
        "crashes the compiler", "does not compile any more", "cannot be launched any more",
        "computes something else", "loses tensor cores", "loses matrix cores", "spills more",
        "uses more scratch", "occupies less", "grows",
    ]  # fmt: skip
    assert {row.term.metric for row in thresholds.usual()} <= set(metrics.known_names())


LOOP = """\
.L_x_1:
        /*0000*/                   LDL R1, [R2] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   EXIT ;
"""


def test_spills_in_a_loop_are_a_class_before_other_spills(tmp_path: Path) -> None:
    place = '\t//## File "/k.py", line 3\n'
    inside = {"ttir": TTIR, "ptx": f'.file 1 "/k.py"\n.loc 1 3 1\n{"ret;"}\n', "sass": place + LOOP}
    outside = {**inside, "sass": place + LOOP.replace("LDL R1, [R2]", "MOV R1, R2")}
    spills = {**SPILLS, "stack_bytes": 8}
    made = verdict(
        one("many", NVIDIA, {**NVIDIA, "spill_store_bytes": 800}),
        compiled(tmp_path, "loop", outside, inside, spills),
        compiled(tmp_path, "straight", outside, outside, spills),
    )
    assert [(row.kernel, row.finding) for row in made.findings] == [
        ("loop", "spills more in a loop"),
        ("many", "spills more"),
        ("straight", "spills more"),
    ]


def test_one_change_that_hits_many_kernels_is_one_group(tmp_path: Path) -> None:
    large = f"{TTIR}{TTIR.replace('@k', '@other')}"
    made = verdict(
        compiled(tmp_path, "first", {"ttir": large}, {"ttir": large.replace(TTIR, MORE)}),
        compiled(tmp_path, "small", {"ttir": TTIR}, {"ttir": MORE}),
        compiled(tmp_path, "else", {"ttir": MORE}, {"ttir": TTIR}),
        SAME,
    )
    assert [(row.kind, row.cause, row.kernels, row.witness.kernel) for row in made.groups] == [
        ("spills more", "ttir: more arith.addi", 2, "small"),
        ("spills more", "ttir: fewer arith.addi", 1, "else"),
    ]
    assert made.summary == (
        "3 findings of 2 kinds in 3 of 4 kernels",
        "spills more, cuda:90, 2 kernels, smallest: small 0 -> 8; ttir: more arith.addi",
        "spills more, cuda:90: else 0 -> 8; ttir: fewer arith.addi",
        "3 of 4 kernels have the same binary",
    )


def test_a_compile_speaks_once_by_its_worst_class() -> None:
    worse = {**SPILLS, "code_bytes": 5000, "occupancy_percent": 10.0}
    made = verdict(one("k", NVIDIA, worse), one("grows", NVIDIA, {**NVIDIA, "code_bytes": 5000}))
    assert [(row.kind, [found.kernel for found in row.findings]) for row in made.groups] == [
        ("spills more", ["k"]),
        ("grows", ["grows"]),
    ]
    (first, _) = made.groups
    assert first.numbers(first.witness) == (
        "spills 0 -> 8; occupancy 50 -> 10 (-80 %); code 1000 -> 5000 (+400 %)"
    )


def test_failures_are_grouped_by_what_failed_and_where() -> None:
    log = "Pipeline failed while executing [`TritonGPUPipeline` on 'builtin.module' operation]"
    made = verdict(
        crashed("a", f"/home/me/a.py:3:4: error: bad layout\n{log}", "failed"),
        crashed("b", f"/home/me/b.py:7:1: error: bad layout\n{log}", "failed"),
        crashed("c", "the compiler died: SIGSEGV"),
        one("d", {**NVIDIA, "launch": "yes"}, {**NVIDIA, "launch": "no: shared 262144 > 232448 B"}),
        one("e", {**NVIDIA, "launch": "yes"}, {**NVIDIA, "launch": "no: shared 300000 > 232448 B"}),
        SAME,
    )
    assert [(row.cause, row.kernels) for row in made.groups] == [
        ("signal: SIGSEGV", 1),
        ("error: bad layout, in TritonGPUPipeline", 2),
        ("shared > B", 2),
    ]


def test_terms_of_the_user_are_classes_of_their_own() -> None:
    made = verdict(one("k", NVIDIA, SPILLS), fail_on="registers>50,spills>0")
    assert [row.kind for row in made.groups] == ["breaks registers>50"]
    assert [len(rows) for rows in made.groups[0].also.values()] == [1]


def test_binaries_that_differ_are_counted_and_are_no_finding(tmp_path: Path) -> None:
    same = compiled(tmp_path, "same", {"ttir": TTIR}, {"ttir": MORE}, NVIDIA)
    differs = compiled(tmp_path, "differs", {"ttir": TTIR}, {"ttir": TTIR}, NVIDIA)
    cubin = replace(differs.pair.b.point.stages["cubin"], sha256="1" * 64)
    stages = {**differs.pair.b.point.stages, "cubin": cubin}
    b = PairMember(differs.pair.b.manifest, replace(differs.pair.b.point, stages=stages))
    differs = replace(differs, pair=replace(differs.pair, b=b))
    assert verdict(same, differs).summary == (
        "no finding by these terms in 2 compiles of 2 kernels; 1 of 2 kernels has the same binary",
    )
    assert verdict(differs, other("old", "failed", "failed")).summary == (
        "not sure: 1 kernel compiles by neither; 0 of 1 kernels have the same binary",
    )
    # For one of its targets only, a kernel has not the same binary.
    again = replace(same, pair=replace(same.pair, kernel="differs", point="another"))
    assert verdict(same, differs, again).same_binary == 1


def test_one_binary_has_no_unknown_values(tmp_path: Path) -> None:
    unread = {**NVIDIA, "spill_store_bytes": None}
    same = compiled(tmp_path, "same", {"ttir": TTIR}, {"ttir": MORE}, unread)
    assert verdict(same).unknown == ()
    a, b = same.pair.a, same.pair.b
    cubin = replace(b.point.stages["cubin"], sha256="1" * 64)
    b = PairMember(b.manifest, replace(b.point, stages={**b.point.stages, "cubin": cubin}))
    differs = replace(same, pair=replace(same.pair, a=a, b=b))
    assert [metric for _, _, metric in verdict(differs).unknown] == ["spills"]
    # A limit of the second value alone has to know it.
    assert verdict(same, fail_on="spills<1").unknown


def test_a_result_that_changed_comes_before_all_numbers() -> None:
    words = "tritongpu-fuse changes the result"
    wrong = Observation(Verdict.BAD, words, cause=words)
    answer = verdict(
        replace(one("k", NVIDIA, SPILLS), result=wrong),
        replace(one("other", NVIDIA, NVIDIA), result=wrong),
        replace(one("right", NVIDIA, NVIDIA), result=Observation(Verdict.GOOD)),
    )
    (group,) = answer.groups
    assert (group.kind, group.cause, group.kernels) == ("computes something else", words, 2)
    assert answer.findings[0].limit == "wrong"
    command = rehearsal.culprit_command(answer.findings[0], Path("/k.toml"), OLD, NEW)
    assert "--when wrong" in command


def test_a_result_that_nobody_knows_is_not_decided() -> None:
    unknown = Observation(Verdict.SKIP, why="passes are checked for one variant at a time")
    answer = verdict(replace(one("k", NVIDIA, NVIDIA), result=unknown))
    assert (answer.findings, answer.unknown) == ((), (("k", "cuda-90-32", "its result"),))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Verdict.GOOD, Verdict.GOOD, Verdict.GOOD),
        (Verdict.GOOD, Verdict.BAD, Verdict.BAD),
        (Verdict.SKIP, Verdict.BAD, Verdict.SKIP),  # it may have been wrong before
        (Verdict.BAD, Verdict.BAD, Verdict.GOOD),  # no regression
        (Verdict.GOOD, Verdict.SKIP, Verdict.SKIP),
    ],
)
def test_a_kernel_that_both_compute_wrongly_is_no_regression(
    before: Verdict, after: Verdict, expected: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = questions.ResultRegressions(BatchOptions())
    answers = {"3.7.0": before, "3.9.0": after}
    monkeypatch.setattr(checker, "_by", lambda job, _: Observation(answers[job.triton.label]))
    request = CompileRequest(Path("k.py"), "k", "", ())
    first, second = (CompileJob(request, side, Path("out")) for side in (OLD, NEW))
    assert checker.of(first, second, SAME.pair).verdict is expected


def test_a_compile_without_a_counterpart_is_not_decided() -> None:
    alone = Unpaired("A", "k", SAME.pair.a, "B has no num_warps=8")
    comparison = Comparison("3.6.0", "3.9.0", (SAME,), (alone,))
    answer = rehearsal.check(comparison, thresholds.usual())
    assert [metric for _, _, metric in answer.unknown] == ["its counterpart: B has no num_warps=8"]
    assert answer.headline.startswith("not sure: 1 kernel has unknown values")


def test_names_order_and_the_line_of_the_module_are_no_change_of_an_operation(tmp_path: Path) -> None:
    head = "module {\n  tt.func public @k() {\n"
    lines = ["    %a = arith.constant 1 : i32\n", "    %b = arith.constant 2 : i64\n"]
    tail = "    tt.return\n  }\n}\n"
    a = f"{head}{''.join(lines)}{tail}"
    b = f"{head}{''.join(reversed(lines))}{tail}".replace("%a", "%c")
    b = b.replace("module {", 'module attributes {"ttng.two-ctas" = false} {')
    ttgir = "module {\n  tt.func public @k() {\n    %a = amdgpu.swap 1 : i32\n    tt.return\n  }\n}\n"
    cases = (
        (ttgir, "no stage differs"),
        (ttgir.replace("1 : i32", "2 : i32"), "ttgir: other amdgpu.swap"),
        (ttgir.replace("    tt.return", "    tt.f %a\n    tt.return"), "ttgir: more tt.f"),
        (ttgir.replace("amdgpu.swap", "amdg.swap"), "ttgir: other amdg.swap"),
        (ttgir.replace("amdgpu.swap", "tt.load"), "ttgir: fewer amdgpu.swap"),
    )
    for number, (after, cause) in enumerate(cases):
        made = compiled(tmp_path, f"k{number}", {"ttir": a, "ttgir": ttgir}, {"ttir": b, "ttgir": after})
        assert made.first_change == cause


def many(count: int, targets: int = 1) -> Assessment:
    """Kernels that fail, each in its own way."""
    rows = [
        Compared(
            pair(
                point(f"cuda:{80 + target}:32"),
                point(f"cuda:{80 + target}:32", status="failed", error=f"error: no {word(number)}"),
                f"a_kernel_with_a_name_that_is_rather_long_{number}",
            ),
            NVIDIA,
            {},
        )
        for number in range(count)
        for target in range(targets)
    ]
    return verdict(*rows, SAME)


def word(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(number)) * 20


def test_a_long_name_makes_room_for_the_cause() -> None:
    (line,) = (row for row in many(1).summary if "a_kernel" in row)
    assert len(line) == 100
    assert line.endswith("…; error: no aaaaaaaaaaaaaaaaaaaa")


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_the_screen_has_ten_short_lines_at_most(count: int) -> None:
    lines = many(count).summary
    assert len(lines) == min(count + 2, 10)
    assert max(map(len, lines)) <= 100
    assert (f"and {count - 7} kinds more in {count - 7} kernels" in lines) == (count > 8)


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flat(token.children or [])


CODE = "<code>[^<>]*</code>"
HTML = re.compile(rf"<details><summary>(?:[a-z ]+|{CODE}), {CODE}: [\d,]+ kernels?</summary>\n|</details>\n")
KINDS = {
    "heading",
    "paragraph",
    "bullet_list",
    "list_item",
    "inline",
    "text",
    "code_inline",
    "fence",
    "html_block",
}


def check(text: str) -> None:
    """Only our own Markdown is in a text, and nothing of it stays unfolded."""
    assert len(text) <= configs.load("rehearse")["comment"]["most"]
    depth, texts = 0, []
    for token in flat(parsed(text)):
        kind = token.type.removesuffix("_open").removesuffix("_close")
        assert kind in KINDS | {"softbreak"}
        if kind == "html_block":
            assert HTML.fullmatch(token.content)
            depth += 1 if token.content.startswith("<details>") else -1
            assert depth in (0, 1)
        if kind == "fence":  # a command, which is folded
            assert depth == 1
            assert shlex.split(token.content)[:1] in (["invoke"], ["tritonsmith"])
        if kind == "text":
            texts.append(token.content)
    assert depth == 0
    # In code nothing means anything; outside of it, GitHub looks for these.
    assert not re.search(r"@|#|://|www\.|GH-|[\u202a-\u202e]", " ".join(texts))


PAGE = Path("/work/pages/rehearsal.html")


def test_the_comment_of_a_pull_request(tmp_path: Path) -> None:
    made = verdict(
        compiled(tmp_path, "small", {"ttir": TTIR}, {"ttir": MORE}, {**SPILLS, "code_bytes": 2000}),
        compiled(tmp_path, "large", {"ttir": MORE}, {"ttir": MOST}),
        crashed("`dies` | <b>@someone</b> #123", "/home/me/my/k.py:3: error: `x` | <!-- [a](http://b) -->"),
        other("old", "failed", "failed"),
        SAME,
    )  # fmt: skip
    text = rehearsal_report.comment(UPGRADE, made, PAGE)
    check(text)
    assert "/home" not in text
    assert "/work" not in text
    assert text == (GOLDEN / "comment.md").read_text(encoding="utf-8")


def test_the_overview_says_what_was_shared_and_how_large_results_are() -> None:
    point = replace(SAME.pair.a.point, cpu_seconds={"ttir": 0.25, "rest": 0.25})
    timed = replace(SAME, pair=replace(SAME.pair, a=replace(SAME.pair.a, point=point)))
    made = rehearsal.RehearsalResult(
        Comparison("3.7.0", "3.9.0", (timed,), ()), 2, 1, stages=10, shared=4, bytes_each=2048
    )
    assessment = verdict(SAME)
    text = rehearsal_report.overview(made, assessment)
    assert "2 compiled now (0.5 CPU s a compile, 4 of 10 stages shared), 1 kept (2.0 KiB a result)" in text
    without = rehearsal_report.overview(replace(made, compiled=0, kept=0), assessment)
    assert "0 compiled now, 0 kept" in without


def test_a_comment_without_findings_is_short() -> None:
    text = rehearsal_report.comment(UPGRADE, verdict(SAME), PAGE)
    check(text)
    assert text.splitlines() == [
        "### Triton `3.7.0` to `3.9.0`: no finding by these terms in 1 compile of 1 kernel",
        "",
        "0 of 1 kernels have the same binary. No kernel was run.",
    ]


def test_a_comment_is_cut_between_two_findings() -> None:
    made = many(1000)
    text = rehearsal_report.comment(UPGRADE, made, PAGE)
    check(text)
    left = re.search(r"\n(\d+) of 1000 kinds of findings are left out here; the page `rehearsal.html`", text)
    assert left
    assert text.count("<details>") == 1000 - int(left[1])
    assert len(text) > 58_000


def test_a_group_of_many_kernels_leaves_room_for_others() -> None:
    rows = [crashed(f"kernel_{number}") for number in range(400)]
    rows += [crashed("refused", "error: no", "failed"), SAME]
    text = rehearsal_report.comment(UPGRADE, verdict(*rows), PAGE)
    check(text)
    assert text.count("<details>") == 2
    assert re.search(r"- and \d+ compiles more\n", text)


def test_a_triton_of_this_machine_has_no_path_in_a_comment() -> None:
    python = "/home/me/old/.venv/bin/python"
    a = Triton(python, python=python)
    b = Triton("envs/mine.toml", env="/home/me/envs/mine.toml")
    text = rehearsal_report.comment(replace(UPGRADE, a=a, b=b), many(2), PAGE)
    check(text)
    assert "### Triton `old` to `mine`" in text
    assert "--triton old,mine" in text
    assert "/home" not in text


NASTY = st.text(st.sampled_from("`|<>@#*_[]()~!\\&;:/.- \n\t\r\0\x1b\u2028\u202e\udc80a1"), max_size=40)
NASTY |= st.text(max_size=40) | st.sampled_from(
    [
        "",
        "</details>",
        "\n\n</details>\n\n# x",
        "`" * 300,
        "```\n",
        "~~~",
        "<!--",
        "@all",
        "#1",
        "http://x",
        "-->",
    ]
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(NASTY, NASTY, st.sampled_from(["failed", "crashed", "timeout"])), min_size=1, max_size=6
    ),
    NASTY,
)
def test_a_comment_of_any_names_and_messages(rows: list[tuple[str, str, Status]], label: str) -> None:
    pairs = [crashed(f"{number}{name}", error, status) for number, (name, error, status) in enumerate(rows)]
    a = Triton(label or "a", env="a")
    made = verdict(*pairs, SAME, one("spills", NVIDIA, SPILLS), fail_on="spills>0")
    check(rehearsal_report.comment(replace(UPGRADE, a=a), made, Path(f"/p/{label.replace('/', '')}.html")))
    assert all(len(line) <= 100 and "\n" not in line for line in made.summary)


def test_a_text_term_is_code_in_a_comment() -> None:
    term = thresholds.parse("ptx contains <b>@x</b>")
    violation = thresholds.Violation(SAME, "breaks a limit", 4, term[0])
    made = replace(verdict(SAME), findings=(violation,))
    check(rehearsal_report.comment(UPGRADE, made, PAGE))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("verdict.toml", "needs the suffix"),
        (".", "needs the suffix"),
        ("no/such.md", "folder does not exist"),
    ],
)
def test_a_comment_that_cannot_be_written_is_refused_before_anything_is_compiled(
    tmp_path: Path, name: str, what: str
) -> None:
    compiler.kernel(tmp_path, "k")
    listed = tmp_path / "kernels.toml"
    listed.write_text('[[kernel]]\nfile = "k.py"\nsignature = "*fp32,64"\n')
    with pytest.raises(Exit, match=what) as caught:
        rehearse(Context(), kernels=str(listed), from_="3.6.0", to="3.9.0", comment=str(tmp_path / name))
    assert caught.value.code == 2


def test_the_plan_writes_one_file() -> None:
    (step,) = rehearsal_report.comment_plan(UPGRADE, verdict(SAME), PAGE, Path("/pr/v.md")).steps
    assert isinstance(step, Write)
    assert step.text.endswith("\n")


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_the_task_ends_with_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pythons = compiler.make(tmp_path / "old", "3.4.0"), compiler.make(tmp_path / "new", "3.6.0")
    for name, remark in (("one", "flaky 3.6.0"), ("two", "")):
        compiler.kernel(tmp_path, name, remark)
    listed = tmp_path / "kernels.toml"
    entry = '[[kernel]]\nfile = "{0}.py"\nsignature = "*fp32,64"\n'
    listed.write_text(entry.format("one") + entry.format("two"))
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "target": ["h100"]}
    flags |= {"fail_on": "ptx>+10%", "comment": str(tmp_path / "verdict.md"), "jobs": "1"}
    with pytest.raises(Exit, match="1 finding") as caught:
        rehearse(Context(), **flags)
    assert caught.value.code == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[-3:-1] == [
        "1 finding of 1 kind in 1 of 2 kernels",
        "crashes the compiler, cuda:90: one; crashed",
    ]
    check((tmp_path / "verdict.md").read_text())
    assert str(tmp_path) not in (tmp_path / "verdict.md").read_text()
    rehearse(Context(), json=True, **flags)
    told = json.loads(capsys.readouterr().out)
    assert told["groups"] == []
    assert told["same_binary"] == {"kernels": 0, "of": 2}
    (line,) = told["summary"]
    assert line.startswith("no finding by these terms in 2 compiles of 2 kernels; ")


def test_a_commit_is_named_by_its_label_and_no_path_of_this_machine() -> None:
    source = CommitSource(Path("/home/me/triton"), "/home/me/mine.toml", "3.6.0", "key")
    branch = Triton("origin/release/3.6.x 1a2b3c4d5e6f", python="/w/python", commit="1" * 40, source=source)
    public = rehearsal_report.public(branch)
    assert public.label == branch.label
    assert "/home/me" not in str(public)
    assert "/w/python" not in str(public)
