"""The command line: each task parses its flags, calls one use case, and prints the result."""

import gc
from typing import Any

from invoke.collection import Collection
from invoke.parser.context import ParserContext

from tritonsmith.cli import modes
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
from tritonsmith.cli.tasks.dev import benchmark, docs, lint, test
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
from tritonsmith.cli.tasks.option_task import OptionTask
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


class Commands(Collection):
    """The commands, and the tasks that carry out their modes, which are not listed.

    Attributes:
        every: all tasks, by their names.
    """

    def __init__(self, commands: dict[str, OptionTask], modes_of_commands: dict[str, OptionTask]) -> None:
        super().__init__()
        self.every = {**commands, **modes_of_commands}
        for name, task in self.every.items():
            task.typed = name
        self.tasks.update(commands)  # `add_task` would make a collection of each part of a name with a dot

    def to_contexts(self, ignore_unknown_help: bool | None = None) -> list[ParserContext]:
        """See `invoke.Collection`."""
        contexts = []
        for name, task in self.every.items():
            old_names = [old for old, new in modes.RENAMED.items() if new == name]
            arguments = task.get_arguments(ignore_unknown_help=ignore_unknown_help)
            contexts.append(ParserContext(name=name, aliases=old_names, args=arguments))
        return contexts

    def subcollection_from_path(self, path: str) -> Collection:
        """See `invoke.Collection`: `--list passes` lists the commands that begin with `passes.`."""
        members = {name: task for name, task in self.tasks.items() if name.startswith(f"{path}.")}
        if not members:
            raise KeyError(path)
        group = Collection(path)
        group.tasks.update({name.removeprefix(f"{path}."): task for name, task in members.items()})
        return group

    def task_with_config(self, name: str | None) -> tuple[Any, dict[str, Any]]:
        """See `invoke.Collection`; an old name is taken, too."""
        task = self.every.get(modes.RENAMED.get(name or "", name or ""))
        return (task, self.configuration()) if task else super().task_with_config(name)


namespace = Commands(
    {
        "up": up,
        "doctor": doctor.run,
        "env": listing,
        "pins": pins,
        "env-triton": env_triton,
        "purge-wheels": purge_wheels,
        "cache.list": caches,
        "clear-cache": clear_cache,
        "setup-mlir": setup_mlir,
        "build-triton": build_triton,
        "install-triton": install_triton,
        "link-compile-commands": link_compile_commands,
        "debug-library": debug_library,
        "watch": watch,
        "test-triton": test_triton,
        "run": run_,
        "worktree": worktree.listing,
        "explain": explain_,
        "pass.new": pass_new,
        "plugin.check": plugin_check,
        "editor": editor_,
        "store": store.listing,
        "store.gc": store.gc,
        "store.export": store.export,
        "store.import": store.import_,
        "kernel.compile": kernel_compile,
        "kernel.show": kernel_show,
        "kernel.lint": kernel_lint,
        "kernel.profile": kernel_profile,
        "kernel.capture": kernel_capture,
        "kernel.export": kernel_aot,
        "kernel.override": ir_override,
        "compare": kernel_compare,
        "bisect": bisect.run,
        "blame": blame,
        "triage": triage,
        "knockout": passes_knockout,
        "reduce": kernel_reduce,
        "passes.dump": passes_dump,
        "passes.list": passes_list,
        "passes.show": passes_show,
        "passes.diff": passes_diff,
        "passes.replay": passes_replay,
        "passes.check": passes_check,
        "passes.isolate": passes_isolate,
    },
    {
        "toolchain.ptxas": ptxas,
        "doctor.compare": doctor.compare,
        "system.packages": packages,
        "env.explain": explain_env,
        "env.allow": allow,
        "cache.show": cache_show,
        "build.explain": explain_build,
        "ci-replay": ci_replay,
        "worktree.add": worktree.add,
        "worktree.remove": worktree.remove,
        "pipeline": pipeline,
        "container": container,
        "store.verify": store.verify,
        "store.forget": store.forget,
        "store.adopt": store.adopt,
        "kernel.resources": kernel_resources,
        "layout": layout,
        "kernel.inline-ptx": inline_ptx,
        "corpus.add": corpus.add,
        "corpus.list": corpus.listing,
        "corpus.remove": corpus.remove,
        "kernel.study": kernel_study,
        "rehearse": rehearse,
        "bisect.resume": bisect.resume,
        "bisect.status": bisect.status,
        "bisect.log": bisect.log,
        "bisect.skip": bisect.skip,
        "passes.reduce": passes_reduce,
        "passes.import": passes_import,
        "ir-env": ir_env,
        "passes.find": passes_find,
        "passes.report": passes_report,
        "passes.run": passes_run,
        # For those who change this tool: CONTRIBUTING.md.
        "test": test,
        "lint": lint,
        "docs": docs,
        "benchmark": benchmark,
    },
)

__all__ = ["namespace"]
