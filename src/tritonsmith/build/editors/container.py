"""`editor --container`: a Dockerfile whose build is the plan of `build-triton`, with a container's paths.

Recipes are pure, so the same facts with other paths give the same plan with these. Only Debian's LLVM is
supported so far: the container installs it as this machine did.

With `--warm`, the Dockerfile adds a filled cache to an image of the user's, in which programs then start
without a compile. While the image is built, its own Triton checks that it will use the cache.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import tritonsmith
from tritonsmith.build.cmake import CmakeTools
from tritonsmith.build.triton import commands, recipe, source
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.compiler import call
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.facts import python_env, tools, triton_cache
from tritonsmith.facts.python_env import PythonEnv

_PHASE = "container"
_ROOT, _HOME = Path("/opt/triton"), Path("/opt/tritonsmith")  # editors mount things in /workspaces
_TOOLS, _FILES = Path("/opt/tools"), Path("/opt/tritonsmith-files")
_DEBIAN_LLVM = re.compile(r"/usr/lib/llvm-(\d+)")
_PYTHON = Path("/usr/bin/python3")
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*")
_HOME_OF_CACHE = re.compile(r"/[^\n\"'$\\]+")  # builders expand variables, and unquote
_PACKAGE = Path(tritonsmith.__file__).parent
WARM = Path("/opt/triton-cache")  # the filled cache in an image
_CACHE, _CHECK = "cache", "check"  # folders beside the Dockerfile


def prepare(env: str, space: Workspace, cwd: Path, out: Path) -> tuple[Plan, str]:
    """Prepare the files of a container, and describe what in the checkout the container will lack.

    Args:
        env: name or file of an environment.
        space: the workspace.
        cwd: the current folder.
        out: the folder for the files.

    Raises:
        FactError: the build uses something that no Debian package provides, or this is not Debian.
    """
    chosen = settings.load(env, {"triton.precompiled-headers": "off"}, commands.last_build(env))
    inputs, _ = commands.gather(chosen, space, source.locate(chosen, space, cwd))
    dirty = "changes that are not committed" if inputs.checkout.dirty else ""
    return plan(inputs, python_env.interpreter(_PYTHON), _debian(), out), dirty


def plan(inputs: Inputs, python: PythonEnv | None, debian: str, out: Path) -> Plan:
    """Return the plan that writes the files.

    Args:
        inputs: inputs of the build on this machine.
        python: Debian's Python.
        debian: version of Debian; empty for another system.
        out: the folder for the files.

    Raises:
        FactError: the build uses something that no Debian package provides, or this is not Debian.
    """
    match = _DEBIAN_LLVM.fullmatch(str(inputs.llvm.prefix))
    # An image is only worth having if it builds what this machine builds: every program must
    # come from the same packages.
    if match is None or not debian or python is None or _foreign(inputs):
        raise FactError(
            "this environment cannot be put into a container yet",
            where=inputs.llvm.prefix,
            why="containers have what this Debian has: its LLVM, clang, lld, ccache and Python",
            hints=["use an environment whose LLVM is Debian's: [llvm] dir = '/usr/lib/llvm-19'"],
        )
    # The plan is the same object that a build here would run, with the container's paths.
    script = recipe.plan(_inside(inputs, python)).shell()
    copied = sorted(set(re.findall(rf"{re.escape(str(_PACKAGE))}/([\w./-]+)", script)))
    script = script.replace(str(_PACKAGE), str(_FILES))
    if left := [
        str(folder) for folder in (inputs.workspace.root, inputs.checkout.root) if f"{folder}/" in script
    ]:
        raise FactError("the plan names folders of this machine", why=", ".join(left))
    texts = {
        "Dockerfile": _dockerfile(inputs, debian, match[1]),
        "build.sh": script,
        "devcontainer.json": json.dumps(_devcontainer(inputs.env.name), indent=2) + "\n",
        **{f"files/{name}": (_PACKAGE / name).read_text(encoding="utf-8") for name in copied},
    }
    steps = tuple(Write(out / name, text, phase=_PHASE) for name, text in texts.items())
    return Plan(f"a container for {inputs.env.name}", steps)


def warm_cache(out: Path) -> Path:
    """Return the folder beside a Dockerfile for the cache that its image takes along."""
    return out / _CACHE


def warm_plan(out: Path, image: str, home: Path, kernels: Path) -> Plan:
    """Return the plan that writes a Dockerfile, and the files by which its build checks the cache.

    Args:
        out: the folder for the files; the cache is or will be in `warm_cache(out)`.
        image: the image that the cache is added to; empty to name it when the image is built.
        home: the folder of the cache in the image.
        kernels: the kernels file that the cache is filled by, which the Dockerfile names.

    Raises:
        UsageError: the name of the image or the folder cannot be in a Dockerfile.
        FactError: the folder has another Dockerfile, which would be lost.
    """
    if image and not _IMAGE.fullmatch(image):
        raise UsageError(f"--image cannot be {image!r}", hints=["as in docker run: vllm/vllm-openai:v0.11.0"])
    if not _HOME_OF_CACHE.fullmatch(str(home)):
        raise UsageError(f"--at cannot be {str(home)!r}", hints=[f"an absolute path: --at {WARM}"])
    file = out / "Dockerfile"
    typed = command("editor --container", warm=kernels, image=image, out=out)
    text = _warm_dockerfile(image, home, typed)
    if os.path.lexists(file) and not _is_ours(untrusted.text_if_any(file)):
        remove = shlex.join(("rm", str(file)))
        hints = ["name another folder: --out DIR", f"or, if it is not needed any more: {remove}"]
        why = "it is not as this command writes it, so it may have been edited"
        raise FactError("this folder has another Dockerfile", where=file, why=why, hints=hints)
    # The worker needs nothing but the image's Python and its Triton.
    sources = call.source_files().items()
    steps = [Write(out / _CHECK / name, source_text, phase=_PHASE) for name, source_text in sources]
    return Plan("an image with a filled cache", (*steps, Write(file, text, phase=_PHASE)))


def _is_ours(text: str) -> bool:
    """Report whether a Dockerfile is as this command wrote it, by whatever flags."""
    image = re.search(r"^ARG IMAGE=?(.*)$", text, re.MULTILINE)
    home = re.search(r'^ENV TRITON_CACHE_DIR="(.*)"$', text, re.MULTILINE)
    if not image or not home:
        return False
    # Without the first line, which has the command with all its flags.
    written = _warm_dockerfile(image[1], Path(home[1]), "")
    return text.rstrip().partition("\n")[2] == written.rstrip().partition("\n")[2]


def _warm_dockerfile(image: str, home: Path, typed: str) -> str:
    record = shlex.quote(str(home / triton_cache.RECORD))
    # The check has a stage of its own, so that the final image has nothing of it. The cache comes from that
    # stage, because a builder skips a stage that nothing depends on.
    return f"""\
# Written by tritonsmith: {typed}
ARG IMAGE{f"={image}" if image else ""}
FROM ${{IMAGE}} AS checked
ARG PYTHON=python3
COPY ["{_CACHE}", "{home}"]
COPY {_CHECK} /opt/tritonsmith-{_CHECK}
RUN "$PYTHON" /opt/tritonsmith-{_CHECK} cache-check {record}

FROM ${{IMAGE}}
COPY --from=checked ["{home}", "{home}"]
ENV TRITON_CACHE_DIR="{home}"
"""


def _inside(inputs: Inputs, python: PythonEnv) -> Inputs:
    """Return the same inputs with the container's paths."""
    home = Workspace(_HOME)
    return replace(
        inputs,
        checkout=replace(inputs.checkout, root=_ROOT),
        workspace=home,
        env=home.env(inputs.env.name),
        python=python,
        tools=CmakeTools(_TOOLS / "bin" / "cmake", _TOOLS / "bin" / "ninja", inputs.tools.cmake_version),
        precompiled={},
        llvm_sources=None,
        after_project=None,
    )


def _foreign(inputs: Inputs) -> bool:
    """Report whether the build uses programs that Debian's packages do not provide."""
    compilers = inputs.compilers
    folders = (inputs.llvm.bin, Path("/usr/bin"))
    return any(
        tool and tool.path.parent not in folders
        for tool in (compilers.cc, compilers.cxx, compilers.linker, compilers.launcher)
    )


def _debian() -> str:
    """Return the version of this Debian, as in 12.11; empty for another system."""
    path = Path("/etc/debian_version")
    text = untrusted.read_text(path).strip() if path.is_file() else ""
    return text if re.fullmatch(r"\d+\.\d+", text) else ""


def _dockerfile(inputs: Inputs, base: str, major: str) -> str:
    table = configs.load("system-packages")
    needs = ("build", "llvm", "debug")
    names = [name.replace("NN", major) for need in needs for name in table[need]["apt"]]
    packages = " ".join(dict.fromkeys(("ca-certificates", "python3-venv", *names)))
    config = f"/usr/lib/llvm-{major}/bin/llvm-config"
    ninja = tools.own("ninja")
    wheels = f"cmake=={inputs.tools.cmake_version}" + (f" ninja=={ninja.version}" if ninja else " ninja")
    url = configs.load("bisect")["upstream"]["page"]
    # The version is tested because Debian may have a newer point release by then, which would build something
    # else than this machine does.
    return f"""\
# Written by tritonsmith: {command("editor --container", env=inputs.env.name)}
FROM debian:{base}
RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*
RUN test "$({config} --version)" = {inputs.llvm.version}
RUN python3 -m venv {_TOOLS} && {_TOOLS}/bin/pip install --quiet --no-cache-dir {wheels}
RUN git clone --quiet {url} {_ROOT}
RUN git -C {_ROOT} checkout --quiet --detach {inputs.checkout.commit}
COPY files {_FILES}
COPY build.sh /opt/build.sh
RUN sh /opt/build.sh
WORKDIR {_ROOT}
"""


def _devcontainer(name: str) -> dict[str, object]:
    """Return an editor's settings: the container's own checkout, and the privileges that a debugger needs."""
    # Docker's default profile forbids ptrace, and personality(), by which gdb turns address randomization
    # off.
    return {
        "name": f"triton-{name}",
        "build": {"dockerfile": "Dockerfile"},
        "workspaceFolder": str(_ROOT),
        "capAdd": ["SYS_PTRACE"],
        "securityOpt": ["seccomp=unconfined"],
    }
