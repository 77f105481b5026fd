"""The command line: each task parses its flags, calls one use case, and prints the result."""

import gc
from typing import Any

from invoke.collection import Collection
from invoke.tasks import Task

from tritonsmith.cli.tasks import bisect, corpus, doctor, store, worktree
from tritonsmith.cli.tasks.blame import blame
from tritonsmith.cli.tasks.build_explain import explain as explain_build
from tritonsmith.cli.tasks.build_triton import build_triton
from tritonsmith.cli.tasks.cache import clear_cache
from tritonsmith.cli.tasks.cache import listing as caches
from tritonsmith.cli.tasks.cache import show as cache_show
from tritonsmith.cli.tasks.ci_replay import ci_replay
from tritonsmith.cli.tasks.container import container
from tritonsmith.cli.tasks.debug_library import debug_library
from tritonsmith.cli.tasks.dev import benchmark, lint, test
from tritonsmith.cli.tasks.editor import editor_
from tritonsmith.cli.tasks.env import allow, listing
from tritonsmith.cli.tasks.env import explain as explain_env
from tritonsmith.cli.tasks.env_triton import env_triton
from tritonsmith.cli.tasks.explain import explain_
from tritonsmith.cli.tasks.install_triton import install_triton
from tritonsmith.cli.tasks.ir_env import ir_env
from tritonsmith.cli.tasks.ir_override import ir_override
from tritonsmith.cli.tasks.kernel_aot import aot as kernel_aot
from tritonsmith.cli.tasks.kernel_capture import capture as kernel_capture
from tritonsmith.cli.tasks.kernel_compare import compare_ as kernel_compare
from tritonsmith.cli.tasks.kernel_compile import compile_ as kernel_compile
from tritonsmith.cli.tasks.kernel_inline_ptx import inline_ptx
from tritonsmith.cli.tasks.kernel_lint import lint_ as kernel_lint
from tritonsmith.cli.tasks.kernel_profile import profile as kernel_profile
from tritonsmith.cli.tasks.kernel_reduce import reduce_ as kernel_reduce
from tritonsmith.cli.tasks.kernel_resources import resources as kernel_resources
from tritonsmith.cli.tasks.kernel_show import show_ as kernel_show
from tritonsmith.cli.tasks.kernel_study import study as kernel_study
from tritonsmith.cli.tasks.layout import layout
from tritonsmith.cli.tasks.link_compile_commands import link_compile_commands
from tritonsmith.cli.tasks.pass_new import new as pass_new
from tritonsmith.cli.tasks.passes_check import check as passes_check
from tritonsmith.cli.tasks.passes_diff import diff as passes_diff
from tritonsmith.cli.tasks.passes_dump import dump as passes_dump
from tritonsmith.cli.tasks.passes_find import find as passes_find
from tritonsmith.cli.tasks.passes_import import import_ as passes_import
from tritonsmith.cli.tasks.passes_isolate import isolate as passes_isolate
from tritonsmith.cli.tasks.passes_knockout import knockout as passes_knockout
from tritonsmith.cli.tasks.passes_list import listing as passes_list
from tritonsmith.cli.tasks.passes_reduce import reduce_ as passes_reduce
from tritonsmith.cli.tasks.passes_replay import replay as passes_replay
from tritonsmith.cli.tasks.passes_report import report as passes_report
from tritonsmith.cli.tasks.passes_run import run as passes_run
from tritonsmith.cli.tasks.passes_show import show as passes_show
from tritonsmith.cli.tasks.pins import pins
from tritonsmith.cli.tasks.pipeline import pipeline
from tritonsmith.cli.tasks.plugin_check import check_ as plugin_check
from tritonsmith.cli.tasks.purge_wheels import purge_wheels
from tritonsmith.cli.tasks.rehearse import rehearse
from tritonsmith.cli.tasks.run import run_
from tritonsmith.cli.tasks.setup_mlir import setup_mlir
from tritonsmith.cli.tasks.system_packages import packages
from tritonsmith.cli.tasks.test_triton import test_triton
from tritonsmith.cli.tasks.toolchain import ptxas
from tritonsmith.cli.tasks.triage import triage
from tritonsmith.cli.tasks.up import up
from tritonsmith.cli.tasks.watch import watch

# What a start makes stays to the end. Looking through it again and again takes a tenth of a build that has
# nothing to do.
gc.set_threshold(50_000)


class _Group(Collection):
    """A group of tasks that also finds tasks by their aliases; tasks are listed under their names."""

    def __init__(self, *tasks: Task[Any], aliased: dict[str, Task[Any]], **named: Task[Any]) -> None:
        super().__init__(*tasks, **named)
        self._aliased = aliased

    def task_with_config(self, name: str | None) -> tuple[Any, dict[str, Any]]:
        """See `invoke.Collection`."""
        found = self._aliased.get(name or "")
        return (found, self.configuration()) if found else super().task_with_config(name)


_bisect = Collection(bisect.resume, bisect.status, bisect.log, bisect.skip)
_bisect.add_task(bisect.run, default=True)  # `invoke bisect`
bisect.run.group = "bisect"
_doctor = Collection(doctor.compare)
_doctor.add_task(doctor.run, default=True)  # `invoke doctor`
doctor.run.group = "doctor"

namespace = Collection(
    up,
    setup_mlir,
    build_triton,
    install_triton,
    link_compile_commands,
    debug_library,
    watch,
    rehearse,
    blame,
    triage,
    test_triton,
    ci_replay,
    run_,
    layout,
    pipeline,
    explain_,
    editor_,
    container,
    pins,
    env_triton,
    purge_wheels,
    clear_cache,
    ir_env,
    ir_override,
    test,
    lint,
    benchmark,
    bisect=_bisect,
    build=Collection(explain=explain_build),
    cache=_Group(list=caches, show=cache_show, aliased={"clear": clear_cache}),
    corpus=Collection(corpus.add, corpus.remove, list=corpus.listing),
    doctor=_doctor,
    env=_Group(allow=allow, explain=explain_env, list=listing, aliased={"install-triton": env_triton}),
    kernel=Collection(
        kernel_aot,
        kernel_capture,
        kernel_compare,
        kernel_compile,
        kernel_lint,
        kernel_profile,
        kernel_reduce,
        kernel_resources,
        kernel_show,
        kernel_study,
        inline_ptx,
    ),
    passes=_Group(
        passes_diff,
        passes_dump,
        passes_check,
        passes_find,
        passes_import,
        passes_isolate,
        passes_knockout,
        passes_reduce,
        passes_replay,
        passes_report,
        passes_run,
        passes_show,
        list=passes_list,
        aliased={"env": ir_env, "override": ir_override},
    ),
    plugin=Collection(plugin_check),
    store=Collection(
        store.verify,
        store.gc,
        store.adopt,
        store.forget,
        store.export,
        store.import_,
        list=store.listing,
    ),
    system=Collection(packages=packages),
    toolchain=Collection(ptxas),
    worktree=Collection(worktree.add, worktree.remove, list=worktree.listing),
    **{"pass": Collection(pass_new)},
)

__all__ = ["namespace"]
