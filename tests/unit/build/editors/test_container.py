"""Containers: the plan of a build with the paths of a container, and nothing of this machine."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.editors import container
from tritonsmith.build.triton import recipe
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Write


def _texts(version: str) -> dict[str, str]:
    plan = container.plan(made.inputs(version), made.python(), "12.11", Path("/out"))
    steps = [step for step in plan.steps if isinstance(step, Write)]
    assert len(steps) == len(plan.steps)
    return {step.path.relative_to("/out").as_posix(): step.text for step in steps}


def _variables(script: str) -> list[str]:
    """Names of CMake's variables, in order."""
    return re.findall(r"^set\((\w+)", script, re.MULTILINE)


@pytest.mark.parametrize("version", ["2.1", "3.2", "3.5", "main"])
def test_its_script_is_the_plan_of_the_build(version: str, tmp_path: Path) -> None:
    texts = _texts(version)
    script = texts["build.sh"]
    here = made.inputs(version)
    for folder in (here.workspace.root, here.checkout.root, made.tool_checkout("linux")):
        assert str(folder) not in script
    assert "src/tritonsmith" not in script
    (tmp_path / "build.sh").write_text(script)
    subprocess.run(["sh", "-n", str(tmp_path / "build.sh")], check=True)
    wanted = recipe.plan(here).shell()
    assert script.count("\n(cd ") == wanted.count("\n(cd ")
    assert _variables(script) == _variables(wanted)
    for name in (name for name in texts if name.startswith("files/")):
        assert f"/opt/tritonsmith-{name}" in script


def test_its_image_is_pinned() -> None:
    texts = _texts("3.5")
    lines = texts["Dockerfile"].splitlines()
    assert "FROM debian:12.11" in lines
    assert 'RUN test "$(/usr/lib/llvm-19/bin/llvm-config --version)" = 19.1.7' in lines
    assert f"RUN git -C /opt/triton checkout --quiet --detach {made.inputs('3.5').checkout.commit}" in lines
    assert any("clang-19 lld-19" in line and "libmlir-19-dev" in line for line in lines)
    assert json.loads(texts["devcontainer.json"])["workspaceFolder"] == "/opt/triton"


def test_a_cache_is_checked_before_an_image_has_it(tmp_path: Path) -> None:
    plan = container.warm_plan(tmp_path, "serve:1", Path("/opt/cache"), Path("captured.toml"))
    texts = {step.path: step.text for step in plan.steps if isinstance(step, Write)}
    lines = texts[tmp_path / "Dockerfile"].splitlines()
    assert "ARG IMAGE=serve:1" in lines
    # The second stage takes the cache from the first, which a builder would otherwise leave out.
    assert lines.index("FROM ${IMAGE} AS checked") < lines.index(
        'COPY --from=checked ["/opt/cache", "/opt/cache"]'
    )
    check = next(line for line in lines if line.startswith("RUN "))
    assert check == 'RUN "$PYTHON" /opt/tritonsmith-check cache-check /opt/cache/tritonsmith-filled.json'
    assert (tmp_path / "check" / "__main__.py") in texts


@pytest.mark.parametrize("image", ["a b", "a\nRUN rm -rf /", "-x", "$HOME"])
def test_an_image_that_would_be_more_than_a_name_is_refused(image: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--image cannot be"):
        container.warm_plan(tmp_path, image, Path("/opt/cache"), Path("k.toml"))


@pytest.mark.parametrize("home", ["cache", "/", "/opt/$HOME", "/a\nUSER root"])
def test_a_folder_that_a_dockerfile_cannot_name_is_refused(home: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--at cannot be"):
        container.warm_plan(tmp_path, "", Path(home), Path("k.toml"))


def test_a_dockerfile_of_the_users_stays(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    first, second = (container.warm_plan(tmp_path, "", Path("/c"), Path(name)).steps[-1] for name in "ab")
    assert isinstance(first, Write)
    assert isinstance(second, Write)
    file.write_text(first.text)
    container.warm_plan(tmp_path, "other:2", Path("/d"), Path("b"))
    file.write_text(first.text + "USER me\n")
    with pytest.raises(FactError, match="another Dockerfile"):
        container.warm_plan(tmp_path, "", Path("/c"), Path("a"))


@pytest.mark.parametrize("what", ["an LLVM of one's own", "another system", "another compiler"])
def test_what_no_package_brings_is_refused(what: str) -> None:
    inputs, debian = made.inputs(), "12.11"
    if what == "an LLVM of one's own":
        inputs = made.inputs(tree=made.llvm(Path("/home/me/llvm")))
    elif what == "another system":
        debian = ""
    else:
        inputs = made.inputs(compilers=made.compilers("macos"))
    with pytest.raises(FactError, match="cannot be put into a container"):
        container.plan(inputs, made.python(), debian, Path("/out"))
