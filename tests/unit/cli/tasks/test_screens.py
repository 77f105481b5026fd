"""The tables of every task, on narrow and on wide screens.

Each task that prints tables is here with what makes its widest: names of real kernels, sweeps, long paths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

import tritonsmith
from tests.unit.build.store import made as stores
from tests.unit.cli.tasks.conftest import Smith
from tests.unit.compiler.dump.streams import HEAD, banner, module, split
from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_measure import manifest, point
from tests.unit.core.ui.fitting import check, check_rows
from tests.unit.doctor.caches import made as caches
from tests.unit.ir.test_instructions import SASS
from tests.unit.lab import timed
from tests.unit.lab.compare.making import point as compared_point
from tests.unit.lab.compare.making import written
from tests.unit.lab.compare.test_thresholds import pair
from tritonsmith.atlas import command as atlas_report
from tritonsmith.atlas.answer import AtlasFacts
from tritonsmith.atlas.source_files import Place
from tritonsmith.build import plugins as plugin_report
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.new_pass import NewPass
from tritonsmith.build.plugins import PluginCheck, PluginRow
from tritonsmith.build.store import housekeeping
from tritonsmith.build.suites import command as suites_report
from tritonsmith.build.suites import replay as replay_ci
from tritonsmith.build.suites.replay import ReplayedStep
from tritonsmith.build.suites.results import SuiteTest
from tritonsmith.build.suites.workflow import WorkflowJob, WorkflowStep
from tritonsmith.build.worktree_add import WorktreeRecord
from tritonsmith.build.worktree_remove import WorktreeRow
from tritonsmith.check import against
from tritonsmith.check import answer as check_report
from tritonsmith.check.against import ComparedVersions
from tritonsmith.check.answer import CheckedPass, CheckResult
from tritonsmith.check.versions import PairResult
from tritonsmith.cli.tasks import namespace, output, worktree
from tritonsmith.cli.tasks import store as store_tasks
from tritonsmith.cli.tasks.build import _list, _print_operations
from tritonsmith.cli.tasks.cache import _print_doomed as show_cleared
from tritonsmith.cli.tasks.cache import _print_verified as show_verified
from tritonsmith.cli.tasks.cache import print_filled as show_filled
from tritonsmith.cli.tasks.editor import table as editor_files
from tritonsmith.cli.tasks.env import print_survey as show_wheels
from tritonsmith.cli.tasks.kernel import print_stages
from tritonsmith.cli.tasks.kernel_export import print_sources as show_sources
from tritonsmith.cli.tasks.option_fields import WIDE
from tritonsmith.cli.tasks.sources import table as pass_files
from tritonsmith.compiler import report as compiles
from tritonsmith.compiler import targets
from tritonsmith.compiler.capture import launch_table
from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.replay import run as replay
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources.measure import COLUMNS, ResourceRow
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor import report as doctor
from tritonsmith.doctor import run, saved_report, snapshot
from tritonsmith.inspect import layouts, pipeline_table, resources
from tritonsmith.inspect import profile as profile_report
from tritonsmith.inspect.layouts import BankAccess, ConvertedLayout
from tritonsmith.inspect.lint import finding as lint_finding
from tritonsmith.inspect.lint import run as lint_report
from tritonsmith.inspect.lint.finding import LintFinding, StageLine
from tritonsmith.inspect.lint.run import LintResult
from tritonsmith.inspect.pipeline_table import BackendPass
from tritonsmith.inspect.profile import KernelProfile
from tritonsmith.inspect.profilers import ProfiledKernel
from tritonsmith.inspect.show import SourceLine
from tritonsmith.ir.layouts import LayoutType, LinearLayout, WrittenType
from tritonsmith.ir.normalize.diff import Diff
from tritonsmith.lab import corpus as corpus_report
from tritonsmith.lab import issue as issue_report
from tritonsmith.lab import knockout as knockout_report
from tritonsmith.lab import report as experiment_report
from tritonsmith.lab import timing_report as time_report
from tritonsmith.lab.bisect import report as bisect_report
from tritonsmith.lab.bisect.search import ExpectedCost
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import CandidateCost
from tritonsmith.lab.blame import blame, pipeline
from tritonsmith.lab.blame.blame import BlameRequest, BlameResult
from tritonsmith.lab.blame.mixtures import AxisRow, Flip
from tritonsmith.lab.compare import matching, rehearsal, study
from tritonsmith.lab.compare import rehearsal_report as rehearse_report
from tritonsmith.lab.compare import report as compare
from tritonsmith.lab.compare.matching import Compared, Comparison
from tritonsmith.lab.compare.rehearsal import RehearsalResult
from tritonsmith.lab.compare.study import StudyCell
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.issue import Issue, Script
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.knockout import KnockedOut, Knockout
from tritonsmith.lab.reduce import reduce_ir as reduce
from tritonsmith.lab.reduce.reduce_ir import Size
from tritonsmith.lab.triage import program as program_knockout
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage import verdict as triage
from tritonsmith.lab.triage.program import ProgramKnockout
from tritonsmith.lab.triage.reduce import reduce_kernel as kernel_reduce
from tritonsmith.lab.triage.reduce.kernel_search import SourceCounts
from tritonsmith.lab.triage.reduce.reduce_kernel import KernelReduced
from tritonsmith.lab.triage.verdict import Conclusion, TriageResult, Tried

KERNEL = "_attn_fwd_inner_with_tensor_descriptors_and_a_long_name"
SWEEP = {"BLOCK_M": 128, "BLOCK_N": 256, "num_warps": 8, "num_stages": 3}
OPTIONS = ", ".join(f"{name}={value}" for name, value in SWEEP.items())
FOLDER = Path("/home/somebody/work space/projects/triton-experiments/attention/outputs/of today")


class World:
    """Where the samples are made.

    Attributes:
        folder: for files.
        smith: runs a command line.
    """

    def __init__(self, folder: Path, smith: Smith) -> None:
        self.folder, self.smith = folder, smith

    def compiled(self) -> Manifest:
        """Two vendors, a sweep, a failure."""
        stages = {"ttir": "x" * 3000, "ttgir": "x" * 70_000, "llir": "x" * 300_000, "ptx": "x", "sass": SASS}
        both = [
            point(self.folder, target, SWEEP | {"num_warps": warps}, {**stages, "cubin": elf_maker.cubin()})
            for target in ("cuda:90:32", "cuda:100:32")
            for warps in (4, 8)
        ]
        bad = point(self.folder, "cuda:120:32", SWEEP, {}, status="failed", error="PTXASError: " + "no " * 40)
        return manifest(self.folder, *both, bad)

    def index(self) -> DumpIndex:
        """A dump with long names and many kinds of operations."""
        lines = [f'"some.operation_{number}"() : () -> ()' for number in range(9)]
        text = banner("Some very long name of a pass that nobody shortened", "") + module(
            *lines[:3], head=HEAD
        )
        text += banner("ConvertTritonToTritonGPU", "convert-triton-to-tritongpu") + module(*lines, head=HEAD)
        text += banner("Last", "last") + module(head=HEAD)
        return split(text, self.folder / "dump")


def _resources(_: World) -> Iterable[Grid]:
    rows = []
    for backend, target in (("cuda", "cuda:100:32"), ("hip", "hip:gfx942:64")):
        for number in range(9):
            values: dict[str, Any] = {column.key: 10**number for column in COLUMNS}
            values["limiter"] = "shared memory"
            counted = {f"{backend} global load {width}": width for width in range(20)}
            rows.append(
                ResourceRow(KERNEL, "a" * 64, target, OPTIONS, values, counted, "" if number else "no " * 40)
            )
    yield from resources.tables_of(rows, cached=False)
    yield from resources.tables_of(rows, cached=True)
    yield from resources.tables_of([row for row in rows if not row.error][:1], cached=False)


def _compare(world: World) -> Iterable[Grid]:
    a = written(
        world.folder / "a", [compared_point("cuda:80:32"), compared_point("cuda:90:32")], registers=40
    )
    b = written(
        world.folder / "b", [compared_point("cuda:80:32"), compared_point("cuda:90:32")], registers=50
    )
    found = matching.compare([a], [b], names=("3.4.0", "/a/long/path/of/a/python"))
    return [one for one in compare.blocks(found) if isinstance(one, Grid)]


def _study(_: World) -> Iterable[Grid]:
    values = {"registers_per_thread": 255, "code_bytes": 1_234_567}
    versions = [f"3.{number}.0" for number in range(12)] + ["/home/somebody/triton/.venv/bin/python"]
    return study.tables_of(
        [StudyCell(one, ResourceRow(KERNEL, "p", "cuda:80:32", values=values)) for one in versions]
    )


def _passes_check(_: World) -> Iterable[Grid]:
    rows = [
        CheckedPass(0, "", "reference"),
        CheckedPass(1, KERNEL, "close", apart=1.2e-7),
        CheckedPass(
            22, "triton-nvidia-gpu-cluster-barrier-mbar-allocator", "unknown", "ttng.tc_gen5_mma_scaled"
        ),
    ]
    yield check_report.pass_table(CheckResult(KERNEL, "cuda:90", tuple(rows), None, 123_456, 9, 3, "", ()))


def _kernel_check(_: World) -> Iterable[Grid]:
    why = f"the operation tt.inline_assembly of {KERNEL} is not known"
    answers = [PairResult("equal", inputs=12), PairResult("unknown", why), PairResult("close")]
    rows = [
        ComparedVersions("num_warps=4", "BLOCK_M=128,BLOCK_N=256,num_warps=8", answer) for answer in answers
    ]
    yield against.configs_table(rows)


def _knockout(_: World) -> Iterable[Grid]:
    error = f"failed: {'/home/somebody/' * 9}k.py:1: error: {KERNEL}"
    known = {"registers_per_thread": 255, "code_bytes": 9}
    rows: dict[Literal["needed", "no effect"], ResourceRow] = {
        "needed": ResourceRow(KERNEL, "p", "cuda:90:32", error=error),
        "no effect": ResourceRow(KERNEL, "p", "cuda:90:32", values=known),
    }
    binding = "nvidia.passes.ttnvgpuir.add_cluster_barrier_mbar_allocator"
    name = "triton-nvidia-gpu-cluster-barrier-mbar-allocator"
    cut = tuple(KnockedOut(name, 1, effect, row, 12.5, binding, "ttgir") for effect, row in rows.items())
    found = [
        Knockout(kernel, "cuda:90:32", "3.9.0", rows["no effect"], 1.5, cut, Path("/out"))
        for kernel in (KERNEL, "other")
    ]
    yield from knockout_report.tables_of(found)
    yield knockout_report.summary(found)
    seen = Observation(Verdict.OTHER, f"exit code 1: {error}", seconds=375.5)
    ran = ProgramKnockout("3.9.0", seen, {f"{name}#1": seen, "cse#2": Observation(Verdict.SKIP, why=error)})
    yield program_knockout.knockout_table(ran, check=True)
    idle, error_row = rows["no effect"], rows["needed"]
    runs = (
        KnockedOut("no pass", 0, "no effect", idle),
        KnockedOut("separate-const-offset-from-gep", 31, "changes the code", idle, unit="function (k)"),
        KnockedOut("licm", 112, "does not compile", error_row, unit=f"loop %x in function {KERNEL}"),
    )
    whole = Knockout(KERNEL, "cuda:90:32", "3.9.0", idle, 1.5, runs, Path("/out"), llvm=True)
    yield from knockout_report.tables_of([whole])


def _corpus(_: World) -> Iterable[Grid]:
    signature = ",".join(f"{name}=*fp16:16" for name in ("a_desc", "b_desc", "c_desc", "workspace"))
    module = "vllm.model_executor.layers.fused_moe.fused_moe"
    kernel = ListedKernel(
        "list.toml",
        "sources/0/k.py",
        KERNEL,
        f"{KERNEL}-12",
        signature,
        options=SWEEP,
        count=123456,
        module=module,
    )
    yield corpus_report.table(
        [kernel, replace(kernel, targets=targets.parse_all(["h100", "mi300x", "sm_120"]))]
    )


def _rehearse(_: World) -> Iterable[Grid]:
    values = {"spill_store_bytes": 0, "spill_load_bytes": 0, "code_bytes": 1_234_567}
    kept, gone = (compared_point("hip:gfx942:64", status=status) for status in ("ok", "failed"))
    pairs = [
        Compared(pair(kept, kept, KERNEL), values, {**values, "spill_store_bytes": 123_456}),
        Compared(pair(kept, replace(gone, error=f"error: {SWEEP} " * 9), f"{KERNEL}-2"), values, {}),
        Compared(pair(gone, gone, f"{KERNEL}-3"), {}, {}),
    ]
    comparison = Comparison("3.4.0", "3.9.0", tuple(pairs))
    verdict = rehearsal.check(comparison, rehearsal.parse_limits(None))
    yield from (
        block
        for block in rehearse_report.blocks(RehearsalResult(comparison, 4, 2), verdict)
        if isinstance(block, Grid)
    )


def _cache(world: World) -> Iterable[Grid]:
    root = world.folder / "cache"
    root.mkdir()
    caches.kernel(root, KERNEL, num_warps=8, num_stages=5, ago=7200)
    caches.kernel(root, "add", target=("hip", "gfx942", 64))
    world.smith("cache.list", "--root", str(root))
    return ()


def _cache_show(world: World) -> Iterable[Grid]:
    root = world.folder / "cache"
    root.mkdir()
    name = caches.kernel(root, KERNEL).name
    answer = world.smith("cache.show", name[:9], "--root", str(root))
    assert answer.code == 0, answer.err
    return ()


def _cache_fill(world: World) -> Iterable[Grid]:
    from tritonsmith.compiler.fill import Filled
    from tritonsmith.worker.messages import FilledRow, FillHead

    where, python = (
        "/home/somebody/venv/lib/python3.12/site-packages/triton",
        ".cpython-312-x86_64-linux-gnu.so",
    )
    head = FillHead("3.6.0", "digest", "3.12.1", python, where, "ptxas", {}, without="there is no C compiler")
    rows = (
        FilledRow(KERNEL, "cuda-90-32", "ok", "", "ENTRY"),
        FilledRow(
            "add", "cuda-90-32", "different", "signature of n: recorded i32, but the JIT makes i64 of it"
        ),
    )
    show_filled(Filled(head, rows, ("ENTRY",), 3), world.folder / "cache")
    return ()


def _cache_verify(_world: World) -> Iterable[Grid]:
    from tritonsmith.compiler.fill import Miss, Verified

    place = "/home/somebody/kernels/attention.py:15"
    differences = ("option num_warps: 8 here, 4 in the cache", "constant BLOCK: 128 here, 64 in the cache")
    show_verified(Verified(4, (Miss(KERNEL, place, differences),), 0))
    return ()


def _clear(world: World) -> Iterable[Grid]:
    from tritonsmith.doctor import cache_clear
    from tritonsmith.doctor.cache_clear import Filters

    root = world.folder / "cache"
    root.mkdir()
    caches.kernel(root, KERNEL)
    wanted = Filters()
    show_cleared(cache_clear.prepare((caches.as_root(root),), wanted, living=()))
    return ()


def _store() -> housekeeping.StoreListing:
    space = workspace.default()
    store = stores.store_in(space)
    for name in ("22.1.0-abcdef123456-RelWithDebInfo-assertions-x86_64-gcc-14-lld", "one"):
        stores.put(store, space, name)
        stores.receipt(space, "an-environment-with-a-long-name", store.path(name))
    return housekeeping.list_entries(store, space, time.time())


def _store_list(_: World) -> Iterable[Grid]:
    store_tasks.print_entries(_store())
    return ()


def _store_gc(_: World) -> Iterable[Grid]:
    from tritonsmith.build.store import housekeeping

    found = _store()
    store_tasks.print_deletions(housekeeping.prepare_gc(found, housekeeping.GcLimits()), found)
    return ()


def _bisect_costs(_: World) -> Iterable[Grid]:
    outcome = Observation(Verdict.SKIP, "spills 4472", KERNEL * 3, 12.0)
    cost = ExpectedCost(912.0, ("LLVM 86b69c31 to be built", "39 native files differ from the last build"))
    subject = "[AMD] Reland 'Prefer direct-to-LDS loads' behind a knob (#12345)"
    rows = [CandidateCost("ab" * 20, subject, outcome, cost), CandidateCost("3.7.1", "", None, cost)]
    yield bisect_report.costs(rows)


def _bisect_status(_: World) -> Iterable[Grid]:
    outcome = Observation(Verdict.SKIP, "spills 4472", KERNEL * 3, 12.0)
    journal, question = Journal(), BisectQuestion(good="3.6.0", bad="3.9.0")
    for name in ("ab" * 20, "3.7.1"):
        journal.add(name, outcome)
    yield bisect_report.tested(BisectSession(Path("/"), question, journal))


def _blame(world: World) -> Iterable[Grid]:
    sides = [Triton(f"3.{number}.0", version=f"3.{number}.0") for number in (6, 9)]
    asked = CompileRequest(world.folder / "k.py", KERNEL, "", (targets.parse("h100"),))
    kernel = ComparedKernel(KERNEL, asked)
    request = BlameRequest(kernel, sides[0], sides[1], (), None, (), world.folder)
    groups = pipeline.groups_of(pipeline.components_of("cuda", ("ttir", "ttgir", "llir", "ptx", "cubin")))
    figures = {"registers": 255, "spills": 29560, "code": 1234567}
    flips = tuple(Flip(group, figures, "ptxas fatal: " + KERNEL * 3) for group in groups)
    rows = tuple(AxisRow("ptxas", "ptx of 3.6.0", f"ptxas 12.{minor}.86", figures) for minor in (8, 9))
    both = (figures, figures)
    one = BlameResult("cuda-90-32", "cuda:90:32", both, both, flips, (), rows, ())
    return [grid for grid in blame.blocks(request, one) if isinstance(grid, Grid)]


def _test_triton(_: World) -> Iterable[Grid]:
    name = "python/test/unit/language/test_core.py::test_dot3d[8-1-64-64-64-32-32-float32-float32]"
    why = "RuntimeError: 0 active drivers ([]). There should only be one."
    tests = [SuiteTest("interpreter", name, "failed", 1234.5, why)] * 30
    return suites_report.blocks([*tests, SuiteTest("gpu-less", name, "known", 0.1, why * 3)])


def _ci_replay(_: World) -> Iterable[Grid]:
    name = "Restore cache of ccache and Triton compilation artifacts"
    step = WorkflowStep(name, "make test-interpret", "", (), "", "")
    steps = [ReplayedStep(step, "failed", "exit code 2: " + KERNEL * 3, "passed")] * 3
    job = WorkflowJob("integration-tests-nvidia.yml", "Integration-Tests", "${{ matrix.runner }}", (step,))
    return [replay_ci.table(job, steps), replay_ci.list_([job])]


def _triage(_: World) -> Iterable[Grid]:
    seen = Observation(Verdict.BAD, "error: " + KERNEL * 3, "spills: unknown", 12.0)
    tried = tuple(Tried(one, seen) for one in variants.every())
    yield triage.table(TriageResult(Conclusion.NONE, "", (), (), seen, tried))


def _layout(_: World) -> Iterable[Grid]:
    bases = {"register": ((0, 1), (0, 2)), "lane": ((0, 4), (1, 0)), "warp": ((0, 0),), "block": ((2, 0),)}
    linear = LinearLayout((4, 8), bases)
    banks = layouts.bank_table([BankAccess("32 elements along dim0", 16, 64, 2048, 64)])
    return [layouts.basis_table(linear), layouts.grid(linear, 60), banks]


def _module_layouts(_: World) -> Iterable[Grid]:
    text = f"#ttg.slice<{{dim = 1, parent = #ttg.blocked<{{{KERNEL}}}>}}>"
    memory = LayoutType("#ttg.swizzled_shared<{vec = 8}>", (4, 8), "f16")
    shapes = {LayoutType(text, (4, 8), "i32"): "lane", memory: "offset"}
    linear = {one: LinearLayout((4, 8), {name: ((0, 1),), "register": ()}) for one, name in shapes.items()}
    written = [WrittenType(one, one.layout, one.shape, "!tt.ptr<f16>") for one in linear]
    made = {one: ConvertedLayout(one, linear[one]) for one in linear}
    failed = LayoutType(text, (2,), "i32")
    made[failed] = ConvertedLayout(failed, None, "the compiler died: SIGABRT\n" + KERNEL)
    yield layouts.layout_table([*written, WrittenType(failed, text, (2,), "i1")], made)


def _kernel_reduce(world: World) -> Iterable[Grid]:
    counts = SourceCounts(12345, 6789, 22)
    yield kernel_reduce.sizes(KernelReduced(world.folder, "error: " + KERNEL * 3, counts, counts, 1, 1.0))


def _explain(_: World) -> Iterable[Grid]:
    found = AtlasFacts("op", "ttg.convert_layout", "convert layout")
    found.tables["arguments"] = [("src", "AnyTypeOf<[TT_Tensor, TTG_MemDescType]>", KERNEL * 2)]
    yield from (one for one in atlas_report.blocks(found) if isinstance(one, Grid))
    yield atlas_report.table([found], "ops", "/home/me/triton")


def _pipeline(_: World) -> Iterable[Grid]:
    when = ("not (capability // 10 in [8, 9])", "capability // 10 >= 10")
    one = BackendPass(
        "ttgir",
        "tritongpu-automatic-warp-specialization",
        (("gfx942", 3, False),),
        Place("c.py", 9, when=when),
    )
    yield pipeline_table.target_table(
        [(one, None, replace(one, calls=()))], ["3.4.0 cuda:90:32", "b", "hip:gfx942:64"]
    )


def _pass_new(_: World) -> Iterable[Grid]:
    header = "third_party/amd/include/TritonAMDGPUTransforms/Passes.h"
    files = ((f"lib/Dialect/TritonNvidiaGPU/Transforms/{KERNEL}.cpp", ""), (f"test/{KERNEL}.mlir", ""))
    one = NewPass("tritonamdgpu-x", "amd.passes.ttgpuir.add_x", *files[0], files, ((header, "", ""),))
    yield pass_files(Path("/home/me/triton-pass-x"), one)


def _editor(_: World) -> Iterable[Grid]:
    files = (MergedFile(".vscode/extensions.json", None, "{}"), MergedFile(".vscode/tasks.json", "{}", "{ }"))
    yield editor_files("/home/me/triton-pass-x", files)


def _plugin_check(_: World) -> Iterable[Grid]:
    symbol = (
        "_ZN4llvm12ilist_detail18SpecificNodeAccessINS0_12node_optionsIN4mlir9OperationELb0ELb0EvLb0EvEEE"
    )
    rows = (
        PluginRow("symbols", "27 taken, 2 missing", "137267 exported", "does not fit", f"{symbol}, {symbol}"),
        PluginRow("LLVM's headers", "23.1.4 " + "ab" * 6, "24.0.0git " + "cd" * 6, "not sure", "why " * 20),
        PluginRow("compiler", "Debian clang version 19.1.7", "clang", "fits"),
    )
    plugin = Path("/home/me/triton-plugins/build/libhoist_loads.so")
    yield plugin_report.rows_table(PluginCheck(plugin, Path("/libtriton.so"), "3.9.0", rows))


def _worktree_list(_: World) -> Iterable[Grid]:
    record = WorktreeRecord("wt-release-3.4.x", "/home/me/triton", "/", "release/3.4.x", "ab" * 20, "dev", 0)
    row = WorktreeRow(record, "", "topic", "ab" * 20, dirty=True, pin="cd" * 20)
    row = replace(row, llvm="in the store, in part", built="outdated", bytes=1 << 33)
    worktree.print_worktrees([row, WorktreeRow(record, "its folder is gone")], 1e6)
    return ()


def _passes(name: str) -> Callable[[World], Iterable[Grid]]:
    words = {"list": [], "find": ["some.operation_1"], "diff": ["1", "--ops"]}[name]

    def make(world: World) -> Iterable[Grid]:
        answer = world.smith(f"passes.{name}", str(world.index().folder), *words)
        assert answer.code == 0, answer.err
        return ()

    return make


def _overview(world: World) -> Iterable[Grid]:
    return [pass_runs.summary_table(world.index())]


def _replay(_: World) -> Iterable[Grid]:
    dump = SimpleNamespace(argument="tritongpu-optimize-accumulator-init-and-much-more")
    job = SimpleNamespace(number=117, links=[SimpleNamespace(dump=dump)])
    outcomes: Any = [SimpleNamespace(job=job, verdict="no binding", seconds=125.0, why="because " * 20)]
    kernel = SimpleNamespace(name=KERNEL, target="hip:gfx942:64")
    by: Any = SimpleNamespace(
        kernel_passes=SimpleNamespace(kernel=kernel), tool=SimpleNamespace(opt=FOLDER, python=None)
    )
    return [replay.outcome_table(outcomes, by)]


def _reduce(_: World) -> Iterable[Grid]:
    size = Size(12_345, 123_456_789, 99_999)
    said = 'assertion: `isa<To>(Val) && "cast<Ty>() argument of incompatible type!"\' in decltype(auto)'
    found: Any = SimpleNamespace(failure=said, before=size, after=size)
    return [reduce.sizes(found)]


def _override(_: World) -> Iterable[Grid]:
    print_stages((Diff("ttgir", 12, 3, ("+a",)),), FOLDER, whole=False)
    return ()


def _aot(world: World) -> Iterable[Grid]:
    binary = world.folder / "binary"
    binary.write_bytes(b"x" * 4000)
    hints = [SimpleNamespace(name=f"{name}_ptr", hint=16) for name in ("query", "key", "value", "out", "lse")]
    variant = SimpleNamespace(
        name=f"{KERNEL}_sm90_0d1d2d3d4d5d6c7c8", out_name=KERNEL, algo="a" * 8, arguments=hints,
        binary=binary,
        point=SimpleNamespace(target="cuda:90:32", arch="90", metadata={}, remarks=("ptxas said " * 20,)),
    )  # fmt: skip
    prepared: Any = SimpleNamespace(groups=[SimpleNamespace(variants=[variant], sources=[1])], folder=FOLDER)
    show_sources(prepared, checked=False)
    return ()


def _purge(_: World) -> Iterable[Grid]:
    row = SimpleNamespace(
        site=FOLDER, title="triton 3.9.0+git0123456789abcdef", what="a wheel", files=999, size=1
    )
    found: Any = SimpleNamespace(rows=[row], notes=(), refused=())
    show_wheels(found)
    return ()


def _library(world: World) -> Iterable[Grid]:
    rows: Any = [SimpleNamespace(name="MLIRGPUToNVVMTransforms", state="in debug", folder=FOLDER)]
    _list(rows, as_json=False)
    flags = "-O0 -g -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS " * 3
    row = SimpleNamespace(what="flags of the compiler", llvm=flags, here="-O2")
    library = SimpleNamespace(name="MLIRTransforms", sources=("a.cpp",))
    whole = SimpleNamespace(objects=())
    operation = SimpleNamespace(library=library, replacement=whole, tables=(), rows=(row,))
    outcome: Any = SimpleNamespace(
        locations=(),
        operations=(operation,),
        fresh=("MLIRTransforms",),
        prepared=SimpleNamespace(warnings=()),
    )
    _print_operations(outcome)
    return _phases(world)


def _tests_so_far(_: World) -> Iterable[Grid]:
    """Return the table of `--status`, which is the only one of a task that writes pages."""
    journal = Journal()
    journal.add(
        "attention_forward_kernel hip-gfx942-64-num_warps=8", Observation(Verdict.BAD, "spills 0 -> 96")
    )
    yield experiment_report.table(journal)


def _issue(_: World) -> Iterable[Grid]:
    shell = "triton-opt input.mlir --pass-pipeline='builtin.module(tritongpu-pipeline{num-stages=3})'"
    scripts = (Script("input.mlir", "", (), shell, outcome="it ends in another way, with the exit code 1"),)
    yield issue_report.table(Issue("triton-lang/triton", "a title: " * 12, "", (), {}, scripts, ()))


def _phases(_: World) -> Iterable[Grid]:
    session: Any = SimpleNamespace(
        seconds={"configure LLVM for a closure of many targets": 3.0, "build": 4321.0}
    )
    output.done("done", session)
    return ()


def _stages(_: World) -> Iterable[Grid]:
    names = ("source", "ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")
    results = [
        {"target": target, "seconds": 1.0, "stages": {name: {"bytes": 123_456} for name in names}}
        for target in ("cuda:100:32", "hip:gfx1250:32")
    ]
    return [tables.stages({"triton": "3.9.0+git0123456789", "python": "3.14.0", "results": results})]


def _run(*argv: str) -> Callable[[World], Iterable[Grid]]:
    def make(world: World) -> Iterable[Grid]:
        answer = world.smith(*argv)
        assert answer.code == 0, answer.err
        return ()

    return make


def _capture(_: World) -> list[Grid]:
    kernel = {"name": "layer_norm_forward_kernel-2", "count": 12345, "configs": [{}] * 32}
    calls = {"grid": [[65536, 128, 1], [1, 1, 1]], "where": ["a_package/ops/layer_norm.py:1234", "b.py:1"]}
    return [launch_table([{**kernel, **calls}], "12345 launches for cuda:90:32")]


def _setups(_: World) -> list[Grid]:
    then = {
        "gpu": "NVIDIA H200 (9.0)",
        "ptxas": "12.8",
        "driver-cuda": "12.8",
        "triton-llvm": "22.0.0git f6ded0be897e",
    }
    now = {
        "gpu": "",
        "ptxas": "13.4",
        "driver-cuda": "12.8",
        "triton-llvm": "",
        "$TRITON_ALWAYS_COMPILE": "1",
    }
    checks = [{"id": "variables.contradictory", "then": "not applicable", "now": "not run"}]
    return [
        snapshot.changes_table(snapshot.changes_between(then, now), "last good, 2026-11-20 14:30", "now"),
        saved_report.table(checks, "laptop.json 2026-11-20", "cluster.json 2026-11-21"),
    ]


def _lint(_: World) -> Iterable[Grid]:
    origin = SourceLine(f"{FOLDER}/attention_with_tensor_descriptors.py", 1234)
    line = StageLine("ttgir", 1234, "tt.load " * 40, origin)
    what = "the 128x64xf16 operand of a dot goes through registers in a loop of num_stages=3; " * 2
    rules = lint_finding.known_rules().values()
    found = [
        LintFinding(rule, what, (line,), KERNEL, f"cuda-90-32,{OPTIONS}", "cuda:90:32") for rule in rules
    ]
    found.append(LintFinding(found[0].rule, what, (line,), "other", "hip-gfx942-64", "hip:gfx942:64"))
    blocks = lint_report.blocks(LintResult(9, tuple(found), (), {}))
    return [block for block in blocks if isinstance(block, Grid)]


def _times(_: World) -> Iterable[Grid]:
    labels = {
        f"{triton} {OPTIONS},BLOCK_N={n}": 12345.678 / n
        for triton in ("3.9.0+git0123", "dev")
        for n in (1, 2)
    }
    failed = {f"3.4.0 {OPTIONS}": "it needs 300000 bytes of shared memory, and a block has 232448"}
    apart = {"buffer": "a_long_name_of_an_output_ptr", "largest": 1.2e-5, "scale": 1234.0, "within": False}
    code = {"registers_per_thread": 255, "spill_store_bytes": 12345}
    row = timed.row(labels, name=KERNEL, compared={list(labels)[1]: [apart]}, failed=failed)
    return time_report.tables_of([time_report.of_kernel(row, dict.fromkeys((*labels, *failed), code))])


def _profile(_: World) -> Iterable[Grid]:
    line = SourceLine(f"{FOLDER}/attention_with_tensor_descriptors.py", 1234)
    kernel = ProfiledKernel(KERNEL * 3, 20_000, 4.3e9)
    kernel.sampled(line, 20_562_113, {"math_pipe_throttle": 9_999_999, "short_scoreboard": 999_999})
    evidence = StageLine("ttgir", 1234, "tt.load", line)
    rules = list(lint_finding.known_rules().values())[:2]
    found = tuple(LintFinding(rule, "what", (evidence,), kernel.name, "p", "cuda:90:32") for rule in rules)
    made = KernelProfile((kernel,), {}, LintResult(1, found, (), {}), (), 0)
    return [block for block in profile_report.blocks(made) if isinstance(block, Grid)]


SAMPLES: dict[str, Callable[[World], Iterable[Grid]]] = {
    "bisect.resume": _bisect_costs,
    "bisect": _bisect_costs,
    "bisect.status": _bisect_status,
    "blame": _blame,
    "explain": _explain,
    "ci-replay": _ci_replay,
    "test-triton": _test_triton,
    "triage": _triage,
    "build-triton": _phases,
    "cache.list": _cache,
    "cache.fill": _cache_fill,
    "container": _cache_fill,
    "cache.verify": _cache_verify,
    "cache.show": _cache_show,
    "clear-cache": _clear,
    "debug-library": _library,
    "doctor.compare": _setups,
    "doctor": lambda world: [doctor.listing(run.ALL), *_setups(world)],
    "env-triton": _phases,
    "env.explain": _run("env.explain", "--env", "debug"),
    "env": _run("env.list"),
    "install-triton": _stages,
    "ir-env": _run("ir-env"),
    "kernel.override": _override,
    "kernel.export": _aot,
    "kernel.capture": _capture,
    "corpus.list": _corpus,
    "compare": _compare,
    "kernel.compile": lambda world: compiles.table(world.compiled()),
    "kernel.lint": _lint,
    "kernel.profile": _profile,
    "kernel.resources": _resources,
    "kernel.time": _times,
    "kernel.study": _study,
    "layout": _layout,
    "link-compile-commands": _phases,
    "passes.diff": _passes("diff"),
    "passes.dump": _overview,
    "kernel.check": _kernel_check,
    "passes.check": _passes_check,
    "passes.find": _passes("find"),
    "passes.import": _overview,
    "reduce": _kernel_reduce,
    "passes.isolate": _reduce,
    "knockout": _knockout,
    "passes.list": _passes("list"),
    "editor": _editor,
    "pass.new": _pass_new,
    "plugin.check": _plugin_check,
    "pipeline": _pipeline,
    "passes.reduce": _reduce,
    "passes.show": _module_layouts,
    "passes.replay": _replay,
    "pins": _run("pins"),
    "purge-wheels": _purge,
    "farm": _rehearse,
    "farm.site": _tests_so_far,
    "issue.new": _issue,
    "rehearse": _rehearse,
    "setup-mlir": _phases,
    "store.gc": _store_gc,
    "store": _store_list,
    "up": _stages,
    "worktree.add": _phases,
    "worktree": _worktree_list,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_table_of_every_task_fits(
    name: str, tmp_path: Path, smith: Smith, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Grid] = []
    plain = tables.plain

    def recorded(*args: Any, **more: Any) -> Grid:
        seen.append(plain(*args, **more))
        return seen[-1]

    monkeypatch.setattr(tables, "plain", recorded)
    for grid in SAMPLES[name](World(tmp_path, smith)):
        assert grid in seen
    assert seen
    for grid in seen:
        assert grid.rows
        for width in (80, 100, 160):
            check(grid, width)
            if not grid.across:
                check_rows(grid, width)


def test_no_task_that_prints_tables_is_forgotten() -> None:
    with_tables = {
        name
        for name in namespace.every
        if any(one.name == WIDE.name for one in namespace.every[name].get_arguments(ignore_unknown_help=True))
    }
    assert with_tables == set(SAMPLES)


def test_there_is_one_way_to_make_a_table() -> None:
    """What imports rich's own tables would not fit."""
    sources = Path(tritonsmith.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if "rich.table" in path.read_text(encoding="utf-8")] == []


def test_wide_shows_a_table_as_it_is(smith: Smith, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritonsmith.core.ui import console

    def widest(*argv: str) -> int:
        console.out.cache_clear()
        return max(map(len, smith("pins", *argv).out.splitlines()))

    monkeypatch.setenv("COLUMNS", "60")
    narrow, wide, again = widest(), widest("--wide"), widest()
    assert narrow == again < wide
    assert smith("pins", "--json").out == smith("pins", "--wide", "--json").out
