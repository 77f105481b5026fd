"""A new pass as a plugin: a folder that builds against a checkout and the libtriton of a wheel or build."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.scaffold import template
from tritonsmith.core.command_line import command
from tritonsmith.core.plan import Plan, Write

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


def prepare(request: PluginRequest, folder: Path) -> Plan:
    """Return the plan that writes the files of a plugin.

    Raises:
        UsageError: the name is not valid, or one of the files exists with another text.
    """
    name = template.checked(request.name)
    module = template.in_snake_case(name)
    values = {
        "ARGUMENT": name,
        "ATTRIBUTE": module,
        "CLASS": template.in_camel_case(name),
        "MODULE": module,
        "NAME": name,
        "STAGE": request.stage,
        "SUMMARY": name.replace("-", " "),
        "TRITON": request.triton or f"of {request.python}",
        "VARIABLE": f"{module.upper()}_LIBRARY",
    }
    values["COMMANDS"] = "".join(f"    {typed}\n" for _, typed in following(request, folder))
    files = {
        f"{values['CLASS']}.cpp": "plugin.cpp",
        "CMakeLists.txt": "CMakeLists.txt",
        "README.md": "README.md",
        f"{module}.py": "plugin.py.in",
        f"test_{module}.py": "test_plugin.py.in",
        "lit.cfg.py": "lit.cfg.py.in",
        f"{name}.mlir": "test.mlir",
    }
    texts = {folder / file: template.render(f"plugin/{source}", values) for file, source in files.items()}
    template.refuse_to_overwrite(texts)
    steps = tuple(Write(path, text, phase="plugin") for path, text in texts.items())
    return Plan(f"the plugin {name}", steps)


def following(request: PluginRequest, folder: Path) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose."""
    python, where, module = request.python, shlex.quote(str(folder)), template.in_snake_case(request.name)
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
