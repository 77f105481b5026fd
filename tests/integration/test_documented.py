"""The commands of README.md and docs/ as they stand there, page by page, on small inputs."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import documented
from tests.documented import DocumentedCommand
from tests.integration.harness import HERE, Smith
from tests.support import made_once, slow
from tritonsmith.compiler import up

README = documented.PAGES[0]
EXAMPLE = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,32,32,32"
LARGE = "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,128,128,32"
SCRIPT = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def double(a_ptr, SIZE: tl.constexpr):
    at = a_ptr + tl.arange(0, SIZE)
    tl.store(at, tl.load(at) * 2)


source = ASTSource(double, {"a_ptr": "*fp32", "SIZE": "constexpr"}, {"SIZE": 32})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""
CAPTURED = "".join(
    f'[[kernel]]\nname = "{name}"\nfile = "matmul.py"\nkernel = "matmul"\n'
    f'signature = "{SIGNATURE}"\nconfigs = [{{num_warps = 4}}, {{num_warps = 8}}]\n'
    for name in ("matmul", "layer_norm")
)
LOG = """// -----// IR Dump Before Canonicalizer (canonicalize) ('builtin.module' operation) //----- //
module {
}
"""

WORDS = {  # what stands for something of the reader's, and large tiles
    "...": SIGNATURE,
    "examples/kernels.toml:matmul": "captured.toml:matmul",
    "examples/aot/kernels.py:vector_add": f"{documented.REPOSITORY / 'examples/aot/kernels.py'}:vector_add",
    LARGE: SIGNATURE,
    "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,64,64,32": SIGNATURE,
    "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32": SIGNATURE,
    "FILE[:KERNEL]": "matmul.py",
    "FOLDER": "calling",
    "gelu": "helper",
    "ID": "cuda-90-32",
    "N": "2",
    "NAME": "dev",
    "OTHER": "a100",
    "fine": "dump",
    "$VENV/bin/python3": "~/venv/bin/python",
}
WORDS_OF_A_PAGE = {
    "README.md": {"all": "h100"},
    "doctor.md": {"PATH": "."},
    "first-hour.md": {"mine": "a100", "debug": "dev"},
    "environments.md": {"PATH": "./my.toml", "wt-release-3.4.x": "dev"},
    "export.md": {"FILE[:KERNEL]": "softmax.py:arcsine"},
    "kernels.md": {"DIR": "compiled"},
    "layout.md": {"DIR": "dump"},
    "lint.md": {"DIR": "compiled"},
    "passes-check.md": {"DIR": "dump", "triton-3.8.0": "wheel"},
    "resources.md": {"DIR": "compiled"},
    "security.md": {"PATH": "./my.toml"},
}
INSTEAD = {  # what is too large, or not of this machine
    "clear-cache --root PATH": "clear-cache --root cache",
    "compare wheel dev kernels.toml --out before-after": (
        "compare num_stages=2 num_stages=3 kernels.toml --out before-after"
    ),
    "passes.dump --from-log log.gz --out DIR": "passes.dump --from-log log.gz --out imported",
    "passes.isolate fine --pattern ld.global.b8": "passes.isolate dump --pattern ttg.convert_layout",
    "passes.isolate fine --when spills>0,registers>128": "passes.isolate dump --when registers>8",
    "passes.show DIR": "passes.show DIR 20",  # test_passes_view.py has a terminal for the viewer
    "purge-wheels": "purge-wheels --env wheel",
    "compare --corpus ci/corpus --from 3.6.0 --to 3.9.0 --out rehearsal.html": (
        "compare captured.toml --from 3.6.0 --to 3.9.0"
    ),
    "compare --corpus ci/corpus --from 3.8.0 --to 3.9.0 --comment verdict.md": (
        "compare captured.toml --from 3.8.0 --to 3.9.0 --comment verdict.md"
    ),
}
DRY = (  # these would build, install or delete
    "build-triton",
    "clear-cache",
    "doctor --fix",
    "env-triton",
    "install-triton",
    "compare 3.4.0",
    "compare 3.8.0",
    "compare --corpus ci/corpus",
    "compare --from",
    "compare captured.toml --from",
    "compare kernels.toml --from",  # or both releases are installed in the workspace of all tests
    "link-compile-commands",
    "purge-wheels",
    "setup-mlir",
    "store --gc",
    "up",
)
BUILDS = ("setup-mlir", "build-triton", "install-triton", "link-compile-commands")
NOT_RUN = {  # why, by how a command begins
    "benchmark": "minutes, on an idle machine",
    "bisect": "wheels of two releases; test_bisect.py has them",
    "blame": "wheels of two releases; test_blame.py has a compiler with a planted change",
    "build-triton --explain --cache-debug": "test_rebuild.py has the two builds that it compares",
    "cache.fill": "a program's kernels and its Triton; test_cache_fill.py has both",
    "cache.list TQKSZLKS": "an entry of a cache; tests/unit/doctor/caches/test_list.py has some",
    "doctor --since": "a history, and a report; test_doctor_since.py has both",
    "doctor --compare": "as above",
    "explain": "a checkout of Triton; tests/unit/atlas has a small one",
    "triage": "a kernel that fails, and many variants; test_triage.py has both",
    "up --like": "a report; tests/unit/doctor/test_saved_report.py has some",
    "docs": "test_docs_site.py builds them",
    "debug-library": "test_debug_library.py has an LLVM that is small enough",
    "kernel.check": "kernels of a reader; test_kernel_check.py has some",
    "kernel.lint --changed": "a repository with kernels; test_kernels_action.py has one",
    "kernel.lint --bounds": "kernels of a reader; tests/unit/inspect/test_bounds.py has some",
    "kernel.time": "a GPU; test_kernel_time.py has a driver that launches nothing",
    "kernel.capture": "programs with torch; test_kernel_capture.py has one without",
    "compare --corpus-make": "wheels of seventeen packages; test_public_corpus.py makes small ones",
    "compare benchmarks/regressions/regressions.toml": "wheels of releases; its table has what they gave",
    "compare examples/tutorials.toml": "ten releases of Triton and a clone of its sources",
    "reduce attention.py": "a kernel that fails, and hundreds of compiles; test_kernel_reduce.py has both",
    "reduce attention.py:_attn_bwd": "as above",
    "reduce attention.py:biased": "as above",
    "reduce FILE:KERNEL": "as above",
    "reduce examples/kernels.toml:matmul": "as above",
    "kernel.profile": "needs a GPU; tests/unit/inspect/profile reads what profilers wrote on one",
    "knockout": "a compile for each of 70 passes; test_passes_surgery.py has some",
    "passes.replay --env wheel": "a program of its own; test_passes_surgery.py has one",
    "reduce input.mlir": "test_passes_reduce.py has an input that fails",
    "passes.replay dump 18 --gdb": "a wheel has no debug information",
    "passes.replay dump tritongpu-coalesce --triton-opt": "a wheel has no triton-opt",
    "editor": "it names a build; tests/unit/build/editors has a small one",
    "pass.new": "a clone of Triton; tests/unit/build/new_pass has small ones",
    "passes.dump --from-log tritongpu-hoist-loads.log": "the log of the build of that clone",
    "passes.replay tritongpu-hoist-loads-dump": "as above",
    "plugin.check": "a plugin; test_plugin_check.py has some",
    "explain --pipeline --triton": "wheels of two releases; test_pipeline.py has two targets",
    "pins --installed": "test_pins.py has environments with a PyTorch",
    "pins --live": "it asks GitHub; test_pins.py has a small PyTorch",
    "pins --triton": "a clone of Triton; test_pins.py has a small one",
    "farm": "a build of Triton; test_farm.py has a small one",
    "farm --site": "a corpus, and releases; test_farm_site.py has a wheel",
    "issue.new": "results of other commands; test_issue.py has some",
    "pins --nightlies": "an index; tests/unit/cli/tasks/test_pins_nightlies.py has a page",
    "pins --picks": "a clone with its release branches; unit/doctor/pins/test_picks.py has a small one",
    "setup-mlir --env asan": "a build under a sanitizer; test_build.py has one",
    "build-triton --env asan": "as above",
    "build-triton --env pass-hoist-loads": "the environment of a worktree that pass.new makes",
    "build-triton --env pass-count-loads": "as above",
    "passes.dump python/tutorials/01-vector-add.py": "a checkout of Triton",
    "passes.replay dump tritongpu-coalesce --env": "a wheel has no triton-opt",
    "explain --pipeline --env": "an environment with a build; test_pipeline.py has one with a wheel",
    "install-triton --env asan": "as above",
    "store --export": "an object store; test_store.py has one in memory",
    "store --import": "an object store; test_store.py has one in memory",
    "run": "a Triton with a sanitizer; test_build.py has a small one",
    "test": "these are the tests",
    "test-triton": "a build with tests; test_watch.py and test_ci_replay.py have small ones",
    "watch": "it runs until ^C; test_watch.py saves files meanwhile",
    "worktree add": "a clone of Triton; test_worktrees.py has a small one",
    "worktree remove": "as above",
}
MODES_RUN = (  # of commands above, whose other modes are not run, or only as a dry run
    "build-triton --explain",
    "explain --pipeline --backend",
    "explain --pipeline --target",
    "up --ptxas",
)
SLOW = (
    "README.md",  # `test_readme_is_a_script` has its commands word for word
    *("blame.md", "compare.md", "doctor.md", "explain.md", "export.md", "kernels.md", "knockout.md"),
    *("layout.md", "passes-check.md", "passes.md", "reduce.md", "replay.md", "resources.md", "triage.md"),
)
LONG = (  # minutes of CPU; the test of README.md's commands runs them on small inputs
    "kernel.compile --resources examples/kernels.toml:matmul --target all",
    "passes.check examples/kernels.toml:matmul",
)
FAILS = (
    "passes.dump matmul.py:matmul --signature ... --target mi300x --option kpack=3",
    "reduce DIR --when wrong",  # no pass of this dump changes the result
    "passes.isolate DIR --when wrong",
)


def begins(command: DocumentedCommand, ways: Iterable[str]) -> bool:
    return any(f"{command.text} ".startswith(f"{way} ") for way in ways)


def longest(command: DocumentedCommand, ways: Iterable[str]) -> str:
    """The way that says most about how a command begins; empty if none does."""
    return max((way for way in ways if begins(command, [way])), key=len, default="")


def commands(page: Path) -> list[DocumentedCommand]:
    """The commands of a page that can be run here, and are not on a page before it."""
    pages = documented.PAGES[: documented.PAGES.index(page)]
    seen = {command.words for before in pages for command in documented.commands(before) if command.complete}
    unique: dict[tuple[str, ...], DocumentedCommand] = {}
    for command in documented.commands(page):
        left_out = longest(command, (*NOT_RUN, *MODES_RUN)) in NOT_RUN
        if command.complete and command.words not in seen and not left_out:
            unique.setdefault(command.words, command)
    return list(unique.values())


def words(command: DocumentedCommand, home: Path) -> list[str]:
    """The command with small inputs in place of the reader's."""
    ours = WORDS | WORDS_OF_A_PAGE.get(command.page, {})
    typed = INSTEAD[command.text].split() if command.text in INSTEAD else command.words
    made = [re.sub("^~/", f"{home}/", ours.get(word, word)) for word in typed]
    more = ["--dry-run"] if longest(command, (*DRY, *MODES_RUN)) in DRY else []
    more += ["--force"] if made[0] == "setup-mlir" else []  # an LLVM takes more disk than may be free
    # One set of inputs shows that the command works as it stands; test_passes_check.py has the usual ones.
    more += ["--seeds", "1"] if made[0] == "passes.check" and "--list" not in made else []
    return [*made, *(flag for flag in more if flag not in made)]


def fill(root: Path, with_wheel: Smith) -> None:
    """Files and folders of the names that the docs use."""
    shutil.copy(HERE / "inline_ptx" / "kernels.py", root / "softmax.py")
    matmul = EXAMPLE.read_text(encoding="utf-8").replace("tiled_matmul", "matmul")
    (root / "matmul.py").write_text(matmul, encoding="utf-8")
    (root / "my_script.py").write_text(SCRIPT, encoding="utf-8")
    (root / "my.toml").write_text("", encoding="utf-8")
    (root / "log.gz").write_bytes(gzip.compress(LOG.encode()))
    kernels, *_recipes = documented.blocks(documented.DOCS / "compare.md", "toml")
    (root / "kernels.toml").write_text(kernels.replace(LARGE, SIGNATURE), encoding="utf-8")
    (sums,) = documented.blocks(documented.DOCS / "passes-check.md", "python")
    (root / "sums.py").write_text(sums, encoding="utf-8")
    (root / "captured.toml").write_text(CAPTURED, encoding="utf-8")
    for folder in ("cache", "ci"):
        (root / folder).mkdir()
    for name in ("kernels.toml", "matmul.py"):
        shutil.copy(root / name, root / "ci")
    (root / "venv").symlink_to(with_wheel.env("wheel") / "venv")
    smith, kernel = with_wheel.beside(root), ("matmul.py", "--signature", SIGNATURE)
    smith("kernel.compile", *kernel, "--target", "h100", "--out", "compiled")
    smith(
        "kernel.compile",
        "softmax.py:calling",
        "--signature",
        "*fp32,*fp32",
        "--target",
        "h100",
        "--out",
        "calling",
    )
    smith("passes.dump", *kernel, "--target", "h100", "--out", "dump")
    smith("passes.dump", *kernel, "--target", "a100", "--out", "a100")
    smith("passes.dump", *kernel, "--target", "mi300x", "--option", "kpack=3", "--out", "crashed", code=1)
    ptx = (root / "dump" / "compiled" / "matmul.ptx").read_text(encoding="utf-8")
    (root / "mine.ptx").write_text(f"{ptx}// mine\n", encoding="utf-8")


@pytest.fixture
def reader(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Smith:
    """Somebody who has what the docs speak of, and an editor that leaves empty lines."""
    inputs = made_once(tmp_path_factory, "documented inputs", lambda root: fill(root, with_wheel))
    shutil.copytree(inputs, tmp_path, symlinks=True, dirs_exist_ok=True)
    path = f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"
    more = {"PATH": path, "EDITOR": "sed -i G", "BROWSER": "true"}
    return replace(with_wheel.beside(tmp_path), more=more)


@pytest.mark.xdist_group("documented")  # pages compile into the default folder of one kernel
@pytest.mark.parametrize(
    "page",
    [page for page in documented.PAGES if page.name not in SLOW]
    + slow(*(page for page in documented.PAGES if page.name in SLOW)),
    ids=lambda page: page.relative_to(documented.REPOSITORY).as_posix(),
)
def test_commands_of_a_page(page: Path, reader: Smith) -> None:
    """README's that `test_readme_is_a_script` runs word for word are not run on small inputs as well."""
    script = {command.words for line in readme_lines() for command in documented.commands_of(line, page.name)}
    found = [
        command
        for command in commands(page)
        if not begins(command, BUILDS) and not (page == README and command.words in script)
    ]
    assert [why for command in found if (why := failure(reader, command))] == []


def test_commands_that_build(built: Smith) -> None:
    """Those that need a checkout of Triton, and a build of it."""
    found = [command for page in documented.PAGES for command in commands(page) if begins(command, BUILDS)]
    unique = {tuple(words(command, built.root)): command for command in found}
    assert len(unique) > 8
    assert [why for command in unique.values() if (why := failure(built, command))] == []


def readme_lines() -> list[str]:
    """README's lines of shell that need no build and no network, and change nothing of the machine's."""
    left_out = (
        *(way for way in NOT_RUN if way != "explain"),
        *BUILDS,
        *DRY,
        "doctor --packages",
        "up",
        *LONG,
    )
    lines = [line for block in documented.blocks(README, "sh") for line in documented.typed_lines(block)]
    return [
        line
        for line in lines
        if (found := documented.commands_of(line, "README.md"))
        and not any(begins(one, left_out) for one in found)
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("documented")
def test_readme_is_a_script(with_wheel: Smith, tmp_path: Path) -> None:
    """Word for word, one line after the other, in a fresh copy of the checkout, after `./bootstrap up`."""
    clone = tmp_path / "tritonsmith"
    shutil.copytree(
        documented.REPOSITORY,
        clone,
        ignore=shutil.ignore_patterns(".*", "docs", "tests", "web", "__pycache__"),
    )
    smith = with_wheel.beside(tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    lines = readme_lines()
    assert {"kernel.compile", "passes.show", "explain", "cache.list"} <= {line.split()[1] for line in lines}
    for line in lines:
        done = subprocess.run(
            ("bash", "-ec", line),
            cwd=clone,
            env={**smith.environ, "PATH": path, "BROWSER": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=smith.patience,
            check=False,
        )
        foreseen = (0, 1) if line.startswith("invoke doctor") else (0,)  # what it says of this machine
        assert done.returncode in foreseen, f"{line}\n{done.stdout}\n{done.stderr}"


def failure(smith: Smith, command: DocumentedCommand) -> str:
    code = None if begins(command, ("doctor",)) else int(begins(command, FAILS))
    try:
        smith(*words(command, smith.root), code=code)
    except AssertionError as error:
        return f"{command}\n{error}"
    return ""


def test_no_entry_of_the_tables_is_left_over() -> None:
    found = [
        command for page in documented.PAGES for command in documented.commands(page) if command.complete
    ]
    ways = (*INSTEAD, *DRY, *BUILDS, *NOT_RUN, *MODES_RUN, *FAILS, *LONG)
    assert [way for way in ways if not any(begins(command, [way]) for command in found)] == []
    typed = {(command.page, word) for command in found for word in command.words}
    assert WORDS.keys() <= {word for _, word in typed}
    ours = {(page, word) for page, each in WORDS_OF_A_PAGE.items() for word in each}
    assert ours <= typed
