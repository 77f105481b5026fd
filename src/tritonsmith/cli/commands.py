"""The registry of commands: the task of each, its purpose, and an example."""

from __future__ import annotations

from typing import NamedTuple


# The list of commands, the start page and completion read this table, and import no task: all of them would
# take seconds. So `purpose` repeats the first line of the task's docstring; tests/unit/cli/test_commands.py
# compares them.
class Command(NamedTuple):
    """A command, or a mode of one.

    Attributes:
        task: the module in `tasks/` and the function: `doctor:run`.
        purpose: the first line of the help.
        example: one useful call, without `invoke`.
    """

    task: str
    purpose: str
    example: str


# By purpose, as the start page shows them.
GROUPS = {
    "environment": {
        "up": Command(
            "env:up", "Install a released Triton, and compile a kernel without a GPU.", "up --env torch"
        ),
        "doctor": Command(
            "doctor:run", "Diagnose the environment; exit 1 if a check fails.", "doctor --env debug --deep"
        ),
        "env": Command("env:environments", "List the environments that have an env file.", "env"),
        "pins": Command(
            "pins:pins", "Show which Triton and which LLVM belong to which PyTorch.", "pins --pytorch 2.9"
        ),
        "env-triton": Command(
            "pins:env_triton",
            "Install the Triton that a PyTorch requires, or name its commit.",
            "env-triton --pytorch 2.9 --env dev",
        ),
        "purge-wheels": Command(
            "env:purge_wheels",
            "Remove every distribution that owns files under triton/.",
            "purge-wheels --env wheel --dry-run",
        ),
        "cache.list": Command(
            "cache:listing",
            "List the entries of Triton's caches, the newest first.",
            "cache.list --older-than 7d",
        ),
        "clear-cache": Command(
            "cache:clear_cache",
            "Clear Triton's cache or a part of it; safe while kernels compile.",
            "clear-cache --stale --dry-run",
        ),
    },
    "build": {
        "setup-mlir": Command(
            "build:setup_mlir",
            "Install or build the LLVM/MLIR that the Triton checkout pins.",
            "setup-mlir --env debug --provider source --dry-run",
        ),
        "build-triton": Command(
            "build:build_triton",
            "Configure and build Triton from a checkout.",
            "build-triton --debug --for opt",
        ),
        "install-triton": Command(
            "build:install_triton",
            "Install the checkout into the environment, editable, and test it.",
            "install-triton --env debug",
        ),
        "link-compile-commands": Command(
            "editor:link_compile_commands",
            "Link one compile_commands.json of Triton and LLVM for clangd.",
            "link-compile-commands --env debug",
        ),
        "debug-library": Command(
            "build:debug_library",
            "Rebuild single LLVM/MLIR libraries at -O0 -g, and relink Triton.",
            "debug-library MLIRTransforms,MLIRIR",
        ),
        "watch": Command(
            "editor:watch",
            "Rerun a task or command at each save, and show what changed.",
            "watch --run 'kernel.compile --resources matmul.py --target h100'",
        ),
        "test-triton": Command(
            "test_triton:test_triton",
            "Run the part of Triton's test suite that needs no GPU.",
            "test-triton test/TritonGPU --lit",
        ),
        "run": Command(
            "build:run_",
            "Run a program under a sanitizer, for Triton's C++ or its kernels.",
            "run --env asan -- python script.py",
        ),
        "worktree": Command(
            "worktree:listing", "List the worktrees with their pins, builds and sizes.", "worktree"
        ),
    },
    "sources": {
        "explain": Command(
            "sources:explain_",
            "Explain a pass, op, function, variable, option or error of Triton.",
            "explain tritongpu-coalesce",
        ),
        "pass.new": Command(
            "sources:new",
            "Write a new pass into Triton: TableGen, C++, CMake, binding, lit test.",
            "pass.new hoist-loads --family ttgpu",
        ),
        "plugin.check": Command(
            "sources:check_",
            "Check whether a plugin is compatible with a Triton.",
            "plugin.check build/libhoist_loads.so --wheel 3.9.0",
        ),
        "editor": Command(
            "editor:editor_",
            "Write editor settings: language servers, debuggers, tasks.",
            "editor vscode --pass tritongpu-pipeline",
        ),
        "mcp": Command(
            "mcp:serve",
            "Serve commands as tools to an agent, by the Model Context Protocol.",
            "mcp --allow up",
        ),
    },
    "LLVM store": {
        "store": Command("store:listing", "List the LLVMs in the store, and who uses them.", "store"),
    },
    "kernels": {
        "kernel.compile": Command(
            "kernel:compile_",
            "Compile a kernel for any GPU (none required) and keep every stage.",
            "kernel.compile add.py --target h100"
            " --signature '*fp32:16,*fp32:16,*fp32:16,i32,BLOCK_SIZE=1024'",
        ),
        "kernel.show": Command(
            "kernel:show_",
            "Print one stage of a kernel: ttgir, PTX, SASS ...",
            "kernel.show matmul.py --stage ptx --target h100 --source-lines",
        ),
        "kernel.lint": Command(
            "kernel:lint_",
            "Find performance problems in a kernel, and the lines that cause them.",
            "kernel.lint matmul.py --target h100 --fail-on any",
        ),
        "kernel.check": Command(
            "kernel:check",
            "Check whether two versions of a kernel compute the same, without a GPU.",
            "kernel.check fused.py:softmax --against plain.py:softmax"
            " --signature '*fp32:16,*fp32:16,i32,1024'",
        ),
        "kernel.profile": Command(
            "kernel:profile",
            "Profile a program's kernels on a GPU, per line of Python.",
            "kernel.profile --env torch -- python script.py",
        ),
        "kernel.time": Command(
            "kernel:time_",
            "Time binaries of any Tritons on the GPU that is here.",
            "kernel.time captured.toml --triton 3.6.0,3.9.0 --fail-on 'time>+5%'",
        ),
        "kernel.capture": Command(
            "kernel:capture",
            "Record the kernels that a program launches, without a GPU.",
            "kernel.capture --env torch --device h100 --out captured.toml -- python script.py",
        ),
        "kernel.export": Command(
            "kernel_export:aot",
            "Compile kernels ahead of time into C sources that launch them.",
            "kernel.export matmul.py --signature '*fp16:16,*fp16:16,i32,BLOCK=128'"
            " --grid '(n+BLOCK-1)/BLOCK,1,1'",
        ),
        "kernel.override": Command(
            "kernel:ir_override",
            "Edit one stage of a kernel, compile from there, and compare.",
            "kernel.override matmul.py --stage ttgir --target h100",
        ),
    },
    "laboratory": {
        "compare": Command(
            "compare:compare_",
            "Compile kernels with two Tritons or option sets, and compare.",
            "compare 3.6.0 3.9.0 matmul.py --target h100 --fail-on 'registers>+5%,spills>0'",
        ),
        "farm": Command(
            "compare:farm",
            "Report what a change of Triton makes worse in a corpus of kernels.",
            "farm captured.toml --base main --head HEAD",
        ),
        "bisect": Command(
            "bisect:run",
            "Find the Triton release or commit that broke a kernel or command.",
            "bisect matmul.py --good 3.6.0 --bad 3.9.0 --when 'spills>0'",
        ),
        "blame": Command(
            "bisect:blame",
            "Show which component changed a kernel: a Triton pass, LLVM or ptxas.",
            "blame matmul.py --target h100 --from 3.6.0 --to 3.9.0 --metric spills",
        ),
        "triage": Command(
            "triage:triage",
            "Find the cause of a wrong kernel by changing one thing at a time.",
            "triage matmul.py --target h100 --when wrong",
        ),
        "knockout": Command(
            "triage:knockout",
            "Skip each pass in turn and report its effect.",
            "knockout matmul.py --target h100",
        ),
        "reduce": Command(
            "reduce:reduce_kernel",
            "Reduce a kernel's Python source while a symptom persists.",
            "reduce matmul.py --target h100 --when 'spills>0'",
        ),
        "issue.new": Command(
            "issue:new",
            "Write the issue about a bug, ready to post upstream; it is not posted.",
            "issue.new dump-isolated --with matmul.reduced.py",
        ),
    },
    "passes": {
        "passes.dump": Command(
            "passes:dump",
            "Record the IR before every pass: one file per pass, plus an index.",
            "passes.dump matmul.py --target h100 --out dump",
        ),
        "passes.list": Command(
            "passes:listing",
            "List the passes of a dump with what each changed, and its time.",
            "passes.list dump --changed",
        ),
        "passes.show": Command(
            "passes:show",
            "Print the IR before or after a pass, or look around in all of them.",
            "passes.show dump tritongpu-coalesce --after",
        ),
        "passes.diff": Command(
            "passes:diff",
            "Show what a pass changed, or where two dumps diverge.",
            "passes.diff dump tritongpu-coalesce",
        ),
        "passes.replay": Command(
            "passes_replay:replay",
            "Run a pass of a dump alone, and compare its output with the next dump.",
            "passes.replay dump 18 --gdb",
        ),
        "passes.check": Command(
            "passes_replay:check",
            "Find the first pass that changes the result, by running the IR.",
            "passes.check dump",
        ),
        "passes.isolate": Command(
            "issue:isolate",
            "Reproduce a failing pass alone, in a folder to attach to an issue.",
            "passes.isolate dump --reduce",
        ),
    },
}
# Not listed: the modes of commands (see modes.py).
MODES = {
    "toolchain.ptxas": Command(
        "env:ptxas",
        "Install another ptxas, and print the variables that make Triton use it.",
        "up --ptxas 12.9",
    ),
    "doctor.compare": Command(
        "doctor:compare",
        "Compare two reports of `invoke doctor --json`: of machines or dates.",
        "doctor --compare laptop.json cluster.json",
    ),
    "system.packages": Command(
        "doctor:packages",
        "Print the system packages that a build needs.",
        "doctor --packages --need build",
    ),
    "env.explain": Command(
        "env:explain",
        "Show every setting of an environment, and where its value comes from.",
        "env debug",
    ),
    "env.allow": Command(
        "env:allow", "Allow an env file in a source tree to name what to run.", "env --allow ./my.toml"
    ),
    "cache.show": Command(
        "cache:show",
        "Show the files of a cache entry, and what each is.",
        "cache.list LQZ6 --root ~/.triton/cache",
    ),
    "build.explain": Command(
        "build:explain_build",
        "Explain what the next build will rebuild, and why.",
        "build-triton --explain --env debug",
    ),
    "ci-replay": Command(
        "test_triton:ci_replay",
        "Run the steps of a CI job that need no GPU, in a clone of the checkout.",
        "test-triton --ci integration-tests-nvidia.yml:Integration-Tests --dry-run",
    ),
    "worktree.add": Command(
        "worktree:add", "Add a git worktree with its own environment.", "worktree add release/3.6.x"
    ),
    "worktree.remove": Command(
        "worktree:remove",
        "Remove a worktree and its environment, unless work would be lost.",
        "worktree remove wt-release-3.6.x",
    ),
    "pipeline": Command(
        "passes:pipeline",
        "Show the passes of all stages, when they run, and which a target uses.",
        "explain --pipeline --target h100,mi300x",
    ),
    "container": Command(
        "editor:container",
        "Write a Dockerfile: it builds a Triton, or adds a filled cache.",
        "editor --container --env dev --out .devcontainer",
    ),
    "store.gc": Command(
        "store:gc",
        "Delete unused LLVMs, the least recently used first.",
        "store --gc --max-size 50GB --dry-run",
    ),
    "store.verify": Command(
        "store:verify", "Verify the LLVMs in the store against their manifests.", "store --verify --quick"
    ),
    "store.forget": Command(
        "store:forget", "Remove an adopted LLVM from the store's list.", "store --forget mine"
    ),
    "store.export": Command(
        "store:export",
        "Pack an LLVM of the store into one relocatable archive.",
        "store --export mine llvm.tar.zst",
    ),
    "store.adopt": Command(
        "store:adopt",
        "Register an existing LLVM build in the store, in place.",
        "store --adopt /opt/llvm --name mine",
    ),
    "store.import": Command(
        "store:import_",
        "Unpack an archive of store --export into the store.",
        "store --import llvm.tar.zst",
    ),
    # The start page has room for no more; the page about caches names it.
    "cache.fill": Command(
        "cache:fill",
        "Fill a cache without a GPU, so that a program starts without a compile.",
        "cache.fill captured.toml --target h100 --out warm",
    ),
    "cache.verify": Command(
        "cache:verify",
        "Run a program on a filled cache, and tell why launches missed.",
        "cache.fill --verify --cache warm -- python script.py",
    ),
    "kernel.bounds": Command(
        "kernel:bounds_",
        "Find offsets that overflow 32 bits, and accesses outside of a tensor.",
        "kernel.lint --bounds norm.py:rms_norm --signature '*fp16:16,i32:16,i32,BLOCK=1024'",
    ),
    "kernel.lint-changed": Command(
        "kernel:lint_changed",
        "Find performance problems in the kernels that a change touches.",
        "kernel.lint --changed --since main --kernels kernels.toml",
    ),
    "kernel.check-changed": Command(
        "kernel:check_changed",
        "Check whether kernels that a change touches compute what they did.",
        "kernel.check --changed --since main --kernels kernels.toml",
    ),
    "kernel.resources": Command(
        "kernel:resources",
        "Show registers, spills, shared memory and occupancy of kernels.",
        "kernel.compile --resources matmul.py --target all --sweep num_warps=4,8",
    ),
    "layout": Command(
        "kernel:layout",
        "Show which thread and register holds each element of a tensor.",
        "kernel.show --layout '#ttg.swizzled_shared<{vec=8, perPhase=1, maxPhase=8, order=[1,0]}>'"
        " --shape 64x64",
    ),
    "kernel.inline-ptx": Command(
        "kernel_export:inline_ptx",
        "Export a kernel as inline PTX, for CUDA C++ or Triton.",
        "kernel.export --as ptx matmul.py --target h100 --header --out matmul.cuh",
    ),
    "farm.site": Command(
        "compare:site",
        "Write a page of many kernels by many Tritons, and a badge.",
        "farm --site captured.toml --triton 3.6.0,3.7.1,3.9.0,main --out site",
    ),
    "farm.export": Command(
        "cache:export",
        "Pack the kept results of releases and commits into one file.",
        "farm --export s3://bucket/farm/",
    ),
    "farm.import": Command(
        "cache:import_",
        "Take over results that another machine packed.",
        "farm --import results.db",
    ),
    "corpus.make": Command(
        "compare:make",
        "Make a corpus of public kernels from packages of the registry.",
        "compare --corpus-make --package liger-kernel",
    ),
    "corpus.add": Command(
        "compare:add",
        "Add the kernels of a list to the corpus, with copies of their sources.",
        "compare --corpus-add captured.toml",
    ),
    "corpus.list": Command("compare:listing", "List the kernels of the corpus.", "compare --corpus-list"),
    "corpus.remove": Command(
        "compare:remove",
        "Remove kernels from the corpus, and sources that no other one needs.",
        "compare --corpus-remove 'matmul*'",
    ),
    "kernel.study": Command(
        "compare:study",
        "Compile kernels with many Triton versions and compare resources.",
        "compare kernels.toml --triton 3.2.0,3.6.0,3.9.0 --target h100 --plot study.svg",
    ),
    "rehearse": Command(
        "compare:rehearse",
        "Compile a corpus with two Tritons and report regressions.",
        "compare captured.toml --from 3.6.0 --to 3.9.0",
    ),
    "bisect.resume": Command(
        "bisect:resume", "Resume a stopped bisect, or continue it into LLVM.", "bisect --resume --explain"
    ),
    "bisect.status": Command("bisect:status", "Show what a bisect has found so far.", "bisect --status"),
    "bisect.log": Command(
        "bisect:log", "Print a bisect in the format of `git bisect replay`.", "bisect --log > log.txt"
    ),
    "bisect.skip": Command(
        "bisect:skip",
        "Skip a Triton in a bisect: it is not tested, or its outcome is dropped.",
        "bisect --skip 3.7.1",
    ),
    "passes.reduce": Command(
        "reduce:reduce_",
        "Reduce an IR file while a pass or command fails the same way.",
        "reduce failing.mlir --pass 'tritongpu-pipeline{num-stages=3}'",
    ),
    "passes.import": Command(
        "passes:import_",
        "Import a saved MLIR_ENABLE_DUMP log.",
        "passes.dump --from-log mlir.log --out dump",
    ),
    "ir-env": Command(
        "passes:ir_env",
        "Print Triton's debug variables for `eval`, or set them for a command.",
        "passes.dump --print-env nvidia,timing --out dumps",
    ),
    "passes.find": Command(
        "passes:find",
        "Show which passes add, duplicate or remove a text.",
        "passes.show dump --find convert_layout",
    ),
    "passes.report": Command(
        "passes:report",
        "Write one self-contained HTML page of all passes.",
        "passes.show dump --page --out report.html",
    ),
    "passes.run": Command(
        "passes_replay:run",
        "Run a program whose kernels compile with a changed pass pipeline.",
        "passes.replay --env torch --skip-pass tritongpu-pipeline -- python script.py",
    ),
    # For those who change this tool: CONTRIBUTING.md.
    "test": Command("dev:test", "Run linters, type checks and the tests, on all cores.", "test --only unit"),
    "lint": Command("dev:lint", "Run ruff, mypy and import-linter.", "lint"),
    "docs": Command("dev:docs", "Build docs/ as a site with search, and check its links.", "docs --serve"),
    "benchmark": Command(
        "dev:benchmark", "Benchmark the command line, caches or builds.", "benchmark --name command_line"
    ),
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
EVERY = {**COMMANDS, **MODES}
