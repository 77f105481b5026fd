"""Workflow files: which steps can run here, hostile ones, real runs in a clone, and a log beside them."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tritonsmith.build.suites import replay, workflow
from tritonsmith.build.suites.command import NothingRunError, TestedBuild
from tritonsmith.build.suites.replay import ReplayedStep
from tritonsmith.build.suites.workflow import WorkflowJob, WorkflowStep
from tritonsmith.core import configs
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, UsageError

pytestmark = pytest.mark.unit

WORKFLOW = """
on: [push]
env: {EVERY: "1"}
jobs:
  tests:
    runs-on: ${{ matrix.runner }}
    env: {OURS: true}
    steps:
      - uses: actions/checkout@v4
      - name: good
        run: |
          # not sudo
          echo "$EVERY $OURS $MINE in $(basename "$PWD")"
        env: {MINE: 3}
        working-directory: python
      - name: bad
        if: ${{ matrix.runner[0] == 'h100' }}
        run: |
          echo one
          false
          echo two
      - run: sudo apt-get install clang
      - run: python3 -m pip install .
      - run: git reset --hard
      - name: on a GPU
        run: pytest python/test/unit
      - name: interpreted
        run: echo pytest
        env: {TRITON_INTERPRET: "1"}
      - run: echo ${{ secrets.TOKEN }}
      - run: ./install.sh
      - name: later
        if: failure()
        run: echo failed
      - name: hidden
        run: sh -c 'su""do true'
      - name: empty
        run: echo 'No tests were found!!!'
      - name: elsewhere
        shell: pwsh
        run: echo x
  mac:
    runs-on: macos-latest
    steps: [{run: echo}]
  other:
    uses: ./.github/workflows/x.yml
"""
LEFT_OUT = {
    "actions/checkout@v4": "a GitHub action: actions/checkout@v4",
    "sudo apt-get install clang": "sudo changes the system",
    "python3 -m pip install .": "pip installs; what it builds is the environment's build here",
    "git reset --hard": "it changes the checkout or git's settings",
    "on a GPU": "tests that need a GPU",
    "echo ${{ secrets.TOKEN }}": "GitHub would fill in secrets.TOKEN",
    "./install.sh": "it runs a script, which may do anything of that",
    "later": "only if failure(): not known here",
    "hidden": "sh is not on the list of what may run here",
    "elsewhere": "it is for another shell: pwsh",
}
LIT = """cd python
D="build/$(ls build | grep -i cmake)/test"
if [ ! -d "${D}" ]; then
  echo "Could not find '${D}'" ; exit -1
fi
lit -v "${D}"
"""
KEYS = ", ".join(f"k{number}: 1" for number in range(250))
RAW = """2026-08-01T10:00:00.0000000Z ##[group]Run echo one
2026-08-01T10:00:01.0000000Z one
2026-08-01T10:00:02.0000000Z \x1b[31m##[error]Process completed with exit code 1.
2026-08-01T10:00:03.0000000Z ##[group]Run echo pytest
"""
BUILD = Path("build/cmake.linux-x86_64-cpython-3.11")
COLUMNS = """tests\tgood\t2026-08-01T10:00:00.0Z hello
tests\tbad\t2026-08-01T10:00:00.0Z ##[error]Process completed with exit code 1.
"""


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestedBuild:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    root = tmp_path / "triton"
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / "python").mkdir()
    (root / ".github" / "workflows" / "ci.yml").write_text(WORKFLOW)
    space = workspace.default()
    return TestedBuild(settings.load("dev"), space, space.env("dev"), root, "3.6.0")


def git(tested: TestedBuild, *words: str) -> str:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.invalid")
    argv = ["git", "-C", str(tested.root), *who, *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def cloned(tested: TestedBuild) -> Callable[[], Path]:
    """Commits the checkout, and clones it as a run does."""

    def make() -> Path:
        if not (tested.root / ".git").exists():
            git(tested, "init", "--quiet")
            git(tested, "add", ".")
            git(tested, "commit", "--quiet", "-m", "all")
        tested.space.claim()
        dest = tested.folder / "ci" / "checkout"
        tested.space.run(replay.clone(tested.root, tested.env, dest, BUILD), "ci-replay", quiet=True)
        return dest

    return make


def run(tested: TestedBuild, found: WorkflowJob, root: Path) -> tuple[dict[str, ReplayedStep], list[str]]:
    """How each step ended, and what those that ran printed."""
    lines: list[str] = []
    change = replay.variables(tested, (), tested.folder / "ci", root)
    confined = bool(replay.sandbox(tested.env))
    steps = replay.run(tested, found, root, change, lines.append, confined=confined)
    logs = [Path(line.rpartition(": ")[2]).read_text() for line in lines]
    return {one.step.name: one for one in steps}, logs


def job(tested: TestedBuild) -> WorkflowJob:
    return workflow.find(workflow.read(tested.root).jobs, "tests")


def only(tested: TestedBuild, text: str) -> list[WorkflowStep]:
    """The steps of a job `a` of a workflow file."""
    (tested.root / ".github" / "workflows" / "ci.yml").write_text(text)
    return list(workflow.find(workflow.read(tested.root).jobs, "a").steps)


def test_what_is_left_out_and_why(tested: TestedBuild) -> None:
    found = job(tested)
    assert {step.name: step.why for step in found.steps if step.why} == LEFT_OUT
    assert [step.name for step in found.runnable] == ["good", "bad", "interpreted", "empty"]


def test_steps_run_as_they_stand(tested: TestedBuild, cloned: Callable[[], Path]) -> None:
    (tested.root / "python" / "kept").touch()
    steps, logs = run(tested, job(tested), cloned())
    assert {name: one.word for name, one in steps.items() if one.word != "left out"} == {
        "good": "passed", "bad": "failed", "interpreted": "passed", "empty": "failed",
    }  # fmt: skip
    assert logs[:2] == ["1 true 3 in python\n", "one\n"]


def test_steps_run_in_a_clone_with_the_changes_of_the_user(
    tested: TestedBuild, cloned: Callable[[], Path]
) -> None:
    (tested.root / "python" / "kept").write_text("before\n")
    (tested.root / ".gitignore").write_text("*.o\n")
    cloned()
    tested.env.build.mkdir(parents=True)
    (tested.root / "python" / "kept").write_text("changed\n")
    (tested.root / "new file").write_text("new\n")
    (tested.root / "x.o").touch()
    before = git(tested, "status", "--porcelain", "--ignored")
    root = cloned()
    script = (
        "cat python/kept 'new file'; pwd; ls -d build/cmake.*; git status --porcelain; echo 3 > python/kept"
    )
    step = WorkflowStep("look", script, "", (), "", "")
    steps, logs = run(tested, WorkflowJob("ci.yml", "a", "linux", (step,)), root)
    assert steps["look"].word == "passed", logs
    printed = logs[0].splitlines()
    assert printed[:4] == ["changed", "new", str(root), str(BUILD)]
    assert " M python/kept" in printed
    assert not (root / "x.o").exists()
    assert (tested.root / "python" / "kept").read_text() == "changed\n"
    assert git(tested, "status", "--porcelain", "--ignored") == before


def test_a_checkout_without_git_is_not_run_in(tested: TestedBuild) -> None:
    with pytest.raises(FactError, match="git cannot tell what to clone"):
        replay.clone(tested.root, tested.env, tested.folder / "ci" / "checkout", BUILD)


@pytest.mark.usefixtures("host_path")
def test_bubblewrap_keeps_a_step_from_the_rest(tested: TestedBuild, cloned: Callable[[], Path]) -> None:
    root = cloned()
    if not replay.sandbox(tested.env):
        pytest.skip("no bwrap that may make namespaces")
    outside = tested.root / "written"
    script = f"echo x > {outside} || echo refused; echo y > inside; ls /run; sudo true"
    step = WorkflowStep("write", script, "", (), "", "")
    steps, logs = run(tested, WorkflowJob("ci.yml", "a", "linux", (step,)), root)
    assert "refused" in logs[0]
    assert "a replay changes nothing in the system" in logs[0]
    assert steps["write"].word == "failed"
    assert (root / "inside").read_text() == "y\n"
    assert not outside.exists()


@pytest.mark.usefixtures("host_path")
def test_a_step_cannot_lead_later_writes_out_of_the_sandbox(
    tested: TestedBuild, cloned: Callable[[], Path]
) -> None:
    root = cloned()
    if not replay.sandbox(tested.env):
        pytest.skip("no bwrap that may make namespaces")
    outside = tested.space.root / "outside"
    outside.mkdir()
    own = tested.folder / "ci"
    script = f"cd {own}; rm -rf 02; ln -s {outside} 02; ln -sfn {outside}/sudo bin/sudo; rm -rf home; true"
    steps = tuple(WorkflowStep(name, text, "", (), "", "") for name, text in (("a", script), ("b", "pwd")))
    run(tested, WorkflowJob("ci.yml", "a", "linux", steps), root)
    assert list(outside.iterdir()) == []
    assert not (own / "02").is_symlink()
    (own / "bin").rename(own / "old")
    (own / "bin").symlink_to(outside)  # left by a step that nothing confined
    run(tested, WorkflowJob("ci.yml", "a", "linux", steps[1:]), cloned())
    assert list(outside.iterdir()) == []


@pytest.mark.usefixtures("host_path")
def test_a_step_cannot_connect_to_a_program_outside(tested: TestedBuild, cloned: Callable[[], Path]) -> None:
    root = cloned()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        place = f"{folder}/tmux socket"
        server.bind(place)
        server.listen()
        if not replay.sandbox(tested.env):
            pytest.skip("no bwrap that may make namespaces")
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({place!r}); print('connected')"
        step = WorkflowStep("connect", f"{sys.executable} -c {shlex.quote(code)}", "", (), "", "")
        steps, logs = run(tested, WorkflowJob("ci.yml", "a", "linux", (step,)), root)
    assert steps["connect"].word == "failed"
    assert "ConnectionRefusedError" in logs[0]


def test_no_step_runs_where_the_sandbox_that_was_promised_is_gone(
    tested: TestedBuild, cloned: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cloned()
    change = replay.variables(tested, (), tested.folder / "ci", root)
    monkeypatch.setenv("PATH", str(tested.folder))  # without bwrap
    steps = (WorkflowStep("write", "echo x", "", (), "", ""),)
    told: list[str] = []
    with pytest.raises(FactError, match="bubblewrap cannot confine the steps now, so none was run"):
        replay.run(
            tested, WorkflowJob("ci.yml", "a", "linux", steps), root, change, told.append, confined=True
        )
    assert told == []


def test_a_folder_that_leads_out_of_the_clone(tested: TestedBuild, cloned: Callable[[], Path]) -> None:
    (tested.root / "link").symlink_to("/")
    found = [WorkflowStep(folder, "pwd", "", (), folder, "") for folder in ("link", "nowhere")]
    steps, logs = run(tested, WorkflowJob("ci.yml", "a", "linux", tuple(found)), cloned())
    assert steps["link"].why == "its folder leads out of the checkout: link"
    assert steps["nowhere"].why == "this checkout has no folder nowhere"
    assert logs == []


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("git -C . restore .", "git is not on the list"),
        ("find . -name '*.py' -delete", "find is not on the list"),
        ("rm setup.py", "rm is not on the list"),
        ("ctest --build-and-test . b --test-command rm x", "ctest may not run here with these arguments"),
        ("ctest -S evil.cmake", "ctest may not run here with these arguments"),
        ("cat </dev/tcp/203.0.113.1/80", "it reads what may be a connection"),
        ('cat <"$X"', "it reads what may be a connection"),
        ("mv setup.py /tmp/x", "mv is not on the list"),
        ("echo x > /etc/cron.d/x", "it writes to a file: /etc/cron.d/x"),
        ("ls 2>setup.py", "it writes to a file: setup.py"),
        ("python -c 'import shutil; shutil.rmtree(\"x\")'", "python may not run here with these arguments"),
        ('su""do true', "sudo is not on the list"),
        ("r\\m x", "rm is not on the list"),
        ("$X y", "the name of a program is computed"),
        ("lit; rm x", "rm is not on the list"),
        ("lit & rm x", "rm is not on the list"),
        ("lit\nrm x", "rm is not on the list"),
        ("(rm x)", "rm is not on the list"),
        ("if rm x; then lit; fi", "rm is not on the list"),
        ("! rm x", "rm is not on the list"),
        ("echo $(rm x)", "rm is not on the list"),
        ('echo "$(ls; rm x)"', "rm is not on the list"),
        ("echo `rm x`", "rm is not on the list"),
        ("echo ${X:=$(rm x)}", "an expansion that is not supported"),
        ("# a \\\nrm x", "rm is not on the list"),
        ("ls # '\nrm x #'", "rm is not on the list"),
        ("echo `echo \\# x; rm y`", "nested in quotes"),
        ("echo \r# $(rm x)", "control characters"),
        ("test -v 'a[$(rm x)]'", "a command in quotes"),
        ('test -v "$X"', "test may not run here with these arguments"),
        ("((X))", "arithmetic"),
        ("echo $[X]", "arithmetic"),
        ("f() { rm x; }; f", "a function"),
        ("cat <<E\n$(rm x)\nE", "a here-document"),
        ("cat <(rm x)", "a here-document or a process substitution"),
        ("eval x", "eval is not on the list"),
        ("PATH=evil lit", "it sets PATH"),
        ("export LD_PRELOAD=evil", "it sets LD_PRELOAD"),
        ("for BASH_ENV in x; do lit; done", "it sets BASH_ENV"),
        ("cd ..", "cd may not run here"),
        ("cd /", "cd may not run here"),
        ("cd $X", "cd may not run here"),
        ("make -C / test-lit", "make may not run here"),
        ("make html", "make may not run here"),
        ("lit 'x", "is missing"),
        # What bash reads as code, and a simpler reading as text; each ran `rm` when it was tried.
        ('echo "$(true # \'\n)echo "; rm x; echo "\'\\\' )"', "a comment in `$(...)`"),
        ("cat <\\\n<E\necho '\nE\nrm x\necho '", "continued within a word"),
        ("echo $\\\n[X]", "continued within a word"),
        ('echo "$\\\n{X@P}"', "continued within a word"),
        ("for x do rm x; done", "a `for` without `in`"),
        ('test "$X" "$Y"', "test may not run here with these arguments"),
        ('test -"$X" "$Y"', "test may not run here with these arguments"),
        ("[ -z $X ]", "an expansion without quotes"),
        ("make NUM_PROCS=$X test-lit", "make may not run here with these arguments"),
    ],
)
def test_what_is_not_on_the_list_is_left_out(script: str, why: str) -> None:
    assert why in workflow.refusal(script, configs.load("ci-replay"))


@pytest.mark.parametrize(
    "script",
    [
        LIT,
        'cd "build/$(ls build | grep -i cmake)"\nctest -j32',
        'ctest --test-dir "$DIR" -V -R Layout -j "$(nproc)" <input',
        "cd python/test/unit\npython3 -m pytest -s -n 16 \\\n ../../tutorials/06.py::test_op --device cpu",
        "make NUM_PROCS=24 test-lit",
        "export CC=/usr/bin/clang",
        'if [ -z "$X" ] || [ "$X" = "$Y" -a ! -d "build/$Y" ]; then lit; fi',
        "cd python\npytest test_autotuner.py::test_kwargs[False]\\\n  --device cpu",
        "isort -c ./python || ( echo '::error title=a' ; exit 1 ) 2>&1 > /dev/null",
    ],
)
def test_what_upstream_runs_without_a_gpu_is_on_the_list(script: str) -> None:
    assert workflow.refusal(script, configs.load("ci-replay")) == ""


def test_variables_and_folders_past_the_rules(tested: TestedBuild) -> None:
    steps = only(
        tested,
        """
jobs:
  a:
    steps:
      - {run: lit, env: {PATH: ./evil}}
      - {run: lit, env: {LD_PRELOAD: evil.so}}
      - {run: lit, env: {BASH_ENV: evil}}
      - {run: lit, env: {PYTHONPATH: evil}}
      - {run: lit, env: {"BASH_FUNC_lit%%": "() { rm x; }"}}
      - {run: lit, working-directory: ../../../../tmp}
      - {run: lit, working-directory: /tmp}
      - {run: lit, shell: "bash -c 'rm x' {0}"}
      - {run: lit, env: {CC: clang}, working-directory: python}
""",
    )
    assert [step.why.replace(", which decides what programs run", "") for step in steps] == [
        "it sets PATH",
        "it sets LD_PRELOAD",
        "it sets BASH_ENV",
        "it sets PYTHONPATH",
        "'BASH_FUNC_lit%%' is not a variable name",
        "it runs in a folder outside the checkout: ../../../../tmp",
        "it runs in a folder outside the checkout: /tmp",
        "it is for another shell: bash -c 'rm x' {0}",
        "",
    ]


def _levels(items: str) -> str:
    rows = [f"a{n}: &a{n} " + items.replace("X", ", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 10)]
    return "a0: &a0 {x: 1}\n" + "\n".join(rows) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        _levels("[X]") + "jobs: {a: {runs-on: *a9, steps: [{run: lit}]}}",
        _levels("[X]") + "jobs: {a: {uses: *a9}}",
        _levels("{<<: [X]}") + "jobs: {a: {env: *a9, steps: [{run: lit}]}}",
        f"s: &s {{{KEYS}}}\njobs: {{a: {{env: *s, steps: [{'*s, ' * 1999}]}}}}",
        "jobs: &j {a: {steps: &s [*s, *j, {run: lit, env: *j}]}}",
        *(
            f"jobs: {{a: {{runs-on: {value}, steps: [{{run: lit}}]}}}}"
            for value in (
                *("9" * 5001, "0x" + "f" * 5000, "2001-13-45", "99:59:43", '!!int ""', '!!float ""'),
                *(
                    f"!!{tag} abc"
                    for tag in ("float", "int", "bool", "timestamp", "binary", "omap", "python/name:x")
                ),
            )
        ),
        'jobs: {"\\ud800": {runs-on: "\\ud800\\0", steps: [{run: "lit\\0x", name: "\\e[2J"}]}}',
    ],
)
def test_a_hostile_file_is_read_as_texts(tested: TestedBuild, text: str) -> None:
    """In a process these took 2.5 GB, hours, or ended in a traceback."""
    (tested.root / ".github" / "workflows" / "hostile.yml").write_text(text)
    found = workflow.read(tested.root)
    assert found.unreadable == ()
    replay.list_(found.jobs)
    for one in found.jobs:
        "\n".join((one.name, one.runner, *(step.name for step in one.steps))).encode()
        assert all(len(text) < 10_000 for step in one.steps for text in (step.name, step.script, one.runner))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("jobs:\n" + "".join(f" j{n}: {{}}\n" for n in range(2000)), "a table with more than 300 keys"),
        ("jobs:\n" + "".join(f" j{n}: {{}}\n" for n in range(60_000)), "larger than 131,072 bytes"),
        ("s: &s {run: lit}\njobs: {a: {steps: [" + "*s, " * 3000 + "]}}", "more than 2,000 steps"),
        (f"s: &s {'make ' * 1500}\njobs: {{a: {{steps: [{'{run: *s}, ' * 1000}]}}}}", "or very long ones"),
        ("[" * 50_000, "nested too deeply"),
        ("a: [", "while parsing"),
        ("a: 1\n---\nb: 2", "single document"),
    ],
)
def test_one_bad_file_does_not_stop_the_listing_of_the_others(
    tested: TestedBuild, text: str, why: str
) -> None:
    bad = tested.root / ".github" / "workflows" / "bad.yml"
    bad.write_text(text)
    found = workflow.read(tested.root)
    assert {one.file for one in found.jobs} == {"ci.yml"}
    ((path, reason),) = found.unreadable
    assert path == bad
    assert why in reason


def test_a_long_script_and_its_patterns(tested: TestedBuild) -> None:
    """A pattern of configs/ci-replay.toml took a time that was quadratic in the length of a line."""
    for part in ("a", "${{", "${{ ", "make ", "x -m ", "git -x "):
        (step,) = only(tested, f'jobs: {{a: {{steps: [{{run: "{part * (100_000 // len(part))}"}}]}}}}')
        assert step.why == "its script has more than 8,192 characters"


def test_no_file_can_be_read(tested: TestedBuild) -> None:
    file = tested.root / ".github" / "workflows" / "ci.yml"
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(FactError, match="cannot read this workflow file"):
        workflow.read(tested.root)


@pytest.mark.parametrize(
    ("text", "there"),
    [(RAW, {"bad": "failed", "interpreted": "passed"}), (COLUMNS, {"good": "passed", "bad": "failed"})],
)
def test_a_log_beside_them(tested: TestedBuild, tmp_path: Path, text: str, there: dict[str, str]) -> None:
    (tmp_path / "log").write_text(text)
    steps = replay.compared(replay.planned(job(tested)), tmp_path / "log")
    assert {one.step.name: one.there for one in steps if one.there} == there


def test_steps_that_begin_with_the_same_line(tested: TestedBuild, tmp_path: Path) -> None:
    file = tested.root / ".github" / "workflows" / "ci.yml"
    file.write_text("jobs: {a: {steps: [{name: x, run: cd y}, {name: z, run: cd y}]}}")
    (found,) = workflow.read(tested.root).jobs
    group, error = "##[group]Run cd y\n", "##[error]Process completed with exit code 8.\n"
    for text, there in ((group + group + error, ["passed", "failed"]), (f"{group}##[group]Run x\n", None)):
        (tmp_path / "log").write_text(text)
        if there:
            assert [one.there for one in replay.compared(replay.planned(found), tmp_path / "log")] == there
        else:
            with pytest.raises(FactError, match="no step of this job"):
                replay.compared(replay.planned(found), tmp_path / "log")


def test_a_log_of_another_job(tested: TestedBuild, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello\n")
    with pytest.raises(FactError, match="no step of this job is in the log"):
        replay.compared(replay.planned(job(tested)), tmp_path / "log")


def test_jobs_of_which_nothing_runs_here(tested: TestedBuild) -> None:
    jobs = workflow.read(tested.root).jobs
    assert {one.key: one.why for one in jobs if one.why} == {
        "mac": "it runs on macos-latest", "other": "it calls ./.github/workflows/x.yml",
    }  # fmt: skip
    with pytest.raises(NothingRunError, match=r"no step of ci\.yml:mac can run here"):
        replay.check(workflow.find(jobs, "ci.yml:mac"))
    with pytest.raises(UsageError, match="no job 'test'") as error:
        workflow.find(jobs, "test")
    assert "did you mean 'tests'?" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a: [", "{}: {", "[" * 5000])
def test_a_file_that_is_no_yaml(tested: TestedBuild, text: str) -> None:
    (tested.root / ".github" / "workflows" / "ci.yml").write_text(text)
    with pytest.raises(FactError, match="cannot read this workflow file"):
        workflow.read(tested.root)


@pytest.mark.parametrize(
    "text", ["", "- a", "jobs: 3", "jobs: {a: 1}", "jobs: {a: {steps: {b: 1}}}", "jobs: {a: {steps: [1]}}"]
)
def test_a_file_of_another_shape_has_no_steps_to_run(tested: TestedBuild, text: str) -> None:
    (tested.root / ".github" / "workflows" / "ci.yml").write_text(text)
    assert [one for job in workflow.read(tested.root).jobs for one in job.runnable] == []
