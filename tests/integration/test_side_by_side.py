"""Two environments of one workspace and one checkout, one after the other and at the same time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, plant, ready, require_llvm, wait_for

HOLDER = "checkout-*.lock.holder"
LIBRARY = "python/triton/_C/libtriton.so"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The environments `dev`, built for release, and `debug`, one after the other."""
    require_llvm()
    root = tmp_path_factory.mktemp("side by side")
    smith = ready(
        Smith(root, cwd=plant("mini_triton", root / "my checkout")), tmp_path_factory, "dev", "debug"
    )
    build(smith, "dev")
    return smith


def build(smith: Smith, env: str, *flags: str) -> str:
    """Build an environment; the log."""
    smith(*words(env), *flags)
    return smith.log("build-triton")


def words(env: str) -> tuple[str, ...]:
    kind = "Debug" if env == "debug" else "Release"
    return ("build-triton", "--env", env, "--llvm-dir", str(LLVM), "--build-type", kind)


def packages(smith: Smith) -> dict[Path, int]:
    """What packages of the registry were unpacked to, and the files themselves."""
    places = (smith.home / "toolchain").glob("[!.]*/**/*")
    return {path: path.stat().st_ino for path in places if path.is_file()}


@pytest.mark.slow
def test_a_package_is_unpacked_once_for_all_environments(both: Smith) -> None:
    before = packages(both)
    assert before
    for env in ("debug", "dev", "debug"):
        assert "--target" not in build(both, env)
    assert packages(both) == before


def test_the_library_is_that_of_the_environment_that_was_built_last(both: Smith) -> None:
    library = both.cwd / LIBRARY
    build(both, "dev")
    release = library.read_bytes()
    build(both, "debug")
    assert library.read_bytes() != release
    told = both("build.explain", "--env", "dev").out
    assert "libtriton.so is linked again: another build folder wrote it" in " ".join(told.split())
    log = build(both, "dev")
    assert "another build folder wrote" in log
    assert library.read_bytes() == release
    assert "no work to do" in build(both, "dev")


def test_two_builds_of_a_checkout_take_turns(both: Smith) -> None:
    (both.cwd / LIBRARY).unlink(missing_ok=True)
    source = both.cwd / "bin" / "triton-opt.cpp"
    source.write_text(f"{source.read_text(encoding='utf-8')}// more\n", encoding="utf-8")
    with both.running(*words("dev")) as first:
        wait_for(lambda: any(both.home.glob(HOLDER)), first)
        second = both(*words("debug"))
        first.communicate()
    assert not any(both.home.glob(HOLDER))
    assert first.returncode == 0
    assert "runs `build-triton --env dev`" in second.err
    for env in ("dev", "debug"):
        assert (both.build(env) / "bin" / "triton-opt").is_file()
    assert "another build folder wrote" in build(both, "dev")


def test_a_container_and_a_worktree_go_on_with_the_settings_of_the_last_build(both: Smith) -> None:
    build(both, "dev")
    assert "set(CMAKE_BUILD_TYPE [[Release]] CACHE" in both("container", "--env", "dev", "--dry-run").out
    done = both("worktree.add", "HEAD", "--env", "dev", "--name", "wt")
    assert "build-triton --env wt" in done.out  # the LLVM is there
    plan = both("build-triton", "--env", "wt", "--dry-run").out
    assert "set(CMAKE_BUILD_TYPE [[Release]] CACHE" in plan
    assert str(LLVM) in plan


@pytest.mark.slow
def test_two_environments_that_begin_at_once_share_what_each_needs(tmp_path: Path) -> None:
    """From nothing: packages of the registry, pip's and the compiler's cache, settings of the workspace."""
    require_llvm()
    dev = Smith(tmp_path, cwd=plant("mini_triton", tmp_path / "my checkout"))
    debug = replace(dev, cwd=plant("mini_triton", tmp_path / "another checkout"))
    with dev.running(*words("dev")) as first, debug.running(*words("debug")) as second:
        ends = [process.communicate(timeout=dev.patience)[1] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], "\n".join(ends)
    before = packages(dev)
    assert before
    assert not [path for path in dev.home.rglob("*") if path.suffix in {".partial", ".holder"}]
    for smith, env in ((dev, "dev"), (debug, "debug")):
        log = build(smith, env)
        assert "ninja: no work to do." in log
        assert "--target" not in log, "a package is there for both"
        assert (smith.cwd / LIBRARY).is_file()
    assert packages(dev) == before
    assert (dev.cwd / LIBRARY).read_bytes() != (debug.cwd / LIBRARY).read_bytes()
