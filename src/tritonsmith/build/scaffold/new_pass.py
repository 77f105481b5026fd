"""`pass.new`: write the files of a pass in a worktree with its own branch, or in the checkout itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.scaffold import in_tree
from tritonsmith.build.scaffold.in_tree import NewPass
from tritonsmith.build.triton import commands, source
from tritonsmith.build.worktrees import add
from tritonsmith.build.worktrees.add import WorktreeRequest
from tritonsmith.build.worktrees.record import WorktreeRecord
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.facts import git


@dataclass(frozen=True)
class PreparedPass:
    """A pass and the plan that writes it.

    Attributes:
        design: its files.
        root: the checkout to write to.
        plan: plan that adds the worktree, if any, and writes the files.
        env: the environment that builds that checkout.
        worktree: the worktree; None for the checkout itself.
    """

    design: NewPass
    root: Path
    plan: Plan
    env: str
    worktree: WorktreeRecord | None


def prepare(
    name: str, family: str, settings: Settings, space: Workspace, cwd: Path, *, env: str, here: bool
) -> PreparedPass:
    """Prepare a pass for the checkout of an environment.

    Args:
        name: name of the pass.
        family: family of passes that it belongs to.
        settings: settings of the environment, which name the checkout.
        space: the workspace.
        cwd: the current folder.
        env: the environment, as named on the command line.
        here: write into the checkout itself.

    Raises:
        FactError: there is no checkout under git, or the pass cannot be written in it.
        UsageError: the name of the pass, of its branch or of its worktree is taken.
    """
    root = source.locate(settings, space, cwd).root
    if not root.is_dir():
        raise FactError(
            "no checkout of Triton here", where=root, hints=["clone it first", "give one: --source PATH"]
        )
    design = in_tree.design(root, name, family)
    clone = add.clone_of(settings, space, cwd)
    in_tree.check_unchanged(root, design)
    title = f"the pass {design.argument}"
    if here:
        return PreparedPass(design, root, Plan(title, design.steps(root)), settings.name, None)
    own = f"pass-{name}"
    request = WorktreeRequest(git.head(root, dirt=False).commit, own, branch=own, env=env)
    worktree = add.prepare(request, clone, space)
    where = worktree.record.folder
    in_tree.refuse_to_overwrite({where / name: text for name, text in design.written})
    plan = Plan(title, (*worktree.plan.steps, *design.steps(where)))
    return PreparedPass(design, where, plan, own, worktree.record)


def following(made: PreparedPass, space: Workspace, *, llvm: bool) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose; `llvm` tells whether the environment has an LLVM."""
    tool, test = (
        shlex.quote(str(path))
        for path in (space.env(made.env).build / "bin" / "triton-opt", made.root / made.design.test)
    )
    argument = made.design.argument
    # In the checkout itself the environment stays: without its flags, another build type would be built.
    kind = None if made.worktree else commands.flags_of_last_build(made.env).get("triton.build-type")
    dump = f"{argument}-dump"
    return (
        *(() if llvm else (("LLVM", command("setup-mlir", env=made.env)),)),
        ("build", command("build-triton", env=made.env, build_type=kind)),
        ("test", command("test-triton", made.design.test, env=made.env)),
        (
            "print",
            f"{tool} {test} -{argument} -cse --mlir-print-ir-before-all -o /dev/null 2> {argument}.log",
        ),
        ("record", command("passes.dump --from-log", f"{argument}.log", out=dump)),
        ("replay", command("passes.replay", dump, argument, env=made.env)),
    )


# A new pass as a plugin: a folder that builds against a checkout and the libtriton of a wheel or build.

_LIBRARY = "import triton._C.libtriton as it; print(it.__file__)"
_SOURCE, _LLVM = "CHECKOUT", "LLVM"  # placeholders for folders that the user has to fill in


@dataclass(frozen=True)
class PluginRequest:
    """A plugin to write.

    Attributes:
        name: name of its pass.
        stage: stage after which the pass runs: `ttir` or `ttgir`.
        triton: the release that loads the plugin; empty for the Triton of `python`.
        python: the interpreter that has that Triton.
        source: a checkout of that release; None if it is not known.
    """

    name: str
    stage: str
    triton: str
    python: Path
    source: Path | None = None


def prepare_plugin(request: PluginRequest, folder: Path) -> Plan:
    """Return the plan that writes the files of a plugin.

    Raises:
        UsageError: the name is not valid, or one of the files exists with another text.
    """
    name = in_tree.checked_name(request.name)
    module = in_tree.in_snake_case(name)
    values = {
        "ARGUMENT": name,
        "ATTRIBUTE": module,
        "CLASS": in_tree.in_camel_case(name),
        "MODULE": module,
        "NAME": name,
        "STAGE": request.stage,
        "SUMMARY": name.replace("-", " "),
        "TRITON": request.triton or f"of {request.python}",
        "VARIABLE": f"{module.upper()}_LIBRARY",
    }
    values["COMMANDS"] = "".join(f"    {typed}\n" for _, typed in after_plugin(request, folder))
    files = {
        f"{values['CLASS']}.cpp": "plugin.cpp",
        "CMakeLists.txt": "CMakeLists.txt",
        "README.md": "README.md",
        f"{module}.py": "plugin.py.in",
        f"test_{module}.py": "test_plugin.py.in",
        "lit.cfg.py": "lit.cfg.py.in",
        f"{name}.mlir": "test.mlir",
    }
    texts = {
        folder / file: in_tree.render_template(f"plugin/{source}", values) for file, source in files.items()
    }
    in_tree.refuse_to_overwrite(texts)
    steps = tuple(Write(path, text, phase="plugin") for path, text in texts.items())
    return Plan(f"the plugin {name}", steps)


def after_plugin(request: PluginRequest, folder: Path) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose."""
    python, where, module = request.python, shlex.quote(str(folder)), in_tree.in_snake_case(request.name)
    library = f"$({shlex.quote(str(python))} -c {shlex.quote(_LIBRARY)})"
    version = request.triton or f"$({shlex.quote(str(python))} -c 'import triton; print(triton.__version__)')"
    source = shlex.quote(str(request.source)) if request.source else _SOURCE
    triton = request.triton or str(python)
    headers = [("headers", command("worktree add", f"v{request.triton}"))] if request.triton else []
    if request.triton:
        headers += [("", command("setup-mlir", env=f"wt-v{request.triton}"))]
    configure = (
        f"cmake -G Ninja -S {where} -B {where}/build -DCMAKE_CXX_COMPILER=clang++",
        f"-DMLIR_DIR={_LLVM}/lib/cmake/mlir",
        f'-DTRITON_SOURCE={source} -DTRITON_VERSION="{version}" -DTRITON_LIBRARY="{library}"',
    )
    return (
        *headers,
        ("build", " ".join(configure)),
        ("", f"ninja -C {where}/build"),
        ("check", command("plugin.check", folder / "build" / f"lib{module}.so", wheel=triton)),
        ("test", f"cd {where} && {shlex.quote(str(python))} -m unittest"),
        ("", f"PYTHON={shlex.quote(str(python))} lit -v {where}"),
    )
