"""Which LLVM is taken: the order of providers, and what is said of each that was not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from git import Actor, Repo

from tests.unit.build import made
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.prebuilt import Consumer
from tritonsmith.build.llvm.providers import PROVIDERS, ProviderChoice, ProviderInputs, choose
from tritonsmith.build.llvm.source import LlvmSource, SourceTree
from tritonsmith.build.store.entry import StoreEntry, StoreManifest
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.settings import Provider
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import BuildUsed, Download, GitFetch, Remove, Run
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree

SOMEBODY = Actor("somebody", "somebody@example.org")
UPSTREAM = LlvmSource("git", "https://github.com/llvm/llvm-project")
SUMS = tuple((name, "ab" * 32) for name in ("ubuntu-x64", "almalinux-x64", "macos-arm64"))
WITH_SUMS = LlvmPin(made.PIN, "cmake/llvm-info.json", build=2, sha256=SUMS)
NEW = {"needs-filecheck", "needs-lld", "needs-clang"}


def facts(*installed: LlvmTree, offline: str | None = None, **changes: Any) -> ProviderInputs:
    given = ProviderInputs(
        workspace=made.workspace(),
        means=made.means(),
        installed=installed,
        source=UPSTREAM,
        reachable=lambda _: offline,
        store=made.store(),
    )
    return replace(given, **changes)


def take(request: LlvmRequest, given: ProviderInputs) -> ProviderChoice:
    return choose(request, given)


def refused(request: LlvmRequest, given: ProviderInputs) -> str:
    with pytest.raises(FactError) as caught:
        take(request, given)
    return str(caught.value)


AT_THE_PIN = made.llvm(Path("/opt/llvm-pin"), made.PIN)


def test_an_installed_llvm_at_the_pin_comes_first() -> None:
    taken = take(made.request(), facts(made.llvm(), AT_THE_PIN))
    assert (taken.provider, taken.prefix, taken.commit) == ("system", Path("/opt/llvm-pin"), made.PIN)
    assert (taken.plan.steps, taken.warnings, taken.refused) == ((), (), ())


def test_then_upstreams_archive() -> None:
    request = replace(made.request(), pin=WITH_SUMS)
    taken = take(request, facts(made.llvm()))
    assert taken.provider == "prebuilt"
    assert taken.prefix == made.workspace().llvm / "llvm-a66376b0-ubuntu-x64-2"
    assert taken.commit == made.PIN
    assert any(isinstance(step, Download) for step in taken.plan.steps)
    assert [name for name, _ in taken.refused] == ["system", "store"]
    assert "does not record its commit; the pin is a66376b0dc3b (cmake/llvm-info.json)" in taken.refused[0][1]


def test_then_sources() -> None:
    taken = take(made.request(), facts())
    assert (taken.provider, taken.commit, taken.warnings) == ("source", made.PIN, ())
    assert taken.prefix.parent == made.workspace().llvm
    assert any(isinstance(step, GitFetch) for step in taken.plan.steps)
    assert dict(taken.refused) == {
        "system": "no installed LLVM found under the usual prefixes",
        "store": f"{made.store().root} is empty",
        "prebuilt": "cmake/llvm-hash.txt has no checksum for ubuntu-x64: give it with --sha256 HEX",
    }


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (made.llvm(commit=made.OTHER), "/usr/lib/llvm-19 (19.1.7) is at 0123456789ab; the pin is a66376b0"),
        (made.llvm(targets=frozenset({"X86", "NVPTX"})), "lacks code generator AMDGPU"),
        (made.llvm(targets=frozenset({"X86"})), "lacks code generator AMDGPU; code generator NVPTX"),
        (made.llvm(packages=frozenset({"mlir", "clang"})), "lacks lld's CMake package (lib/cmake/lld)"),
        (made.llvm(packages=frozenset({"lld"})), "lacks MLIR's CMake package (lib/cmake/mlir)"),
        (made.llvm(tools=frozenset({"clang++", "mlir-tblgen"})), "lacks FileCheck (bin/FileCheck)"),
        (made.llvm(tools=frozenset({"FileCheck", "mlir-tblgen"})), "lacks clang++ (bin/clang++), which"),
        (made.llvm(tools=frozenset({"FileCheck", "clang++"})), "lacks mlir-tblgen (bin/mlir-tblgen)"),
        (made.llvm(static=False), "linking only the dylib registers options twice"),
        (made.llvm(static=False, build_tree=True), "not built yet"),
    ],
)
def test_why_an_installed_llvm_is_not_taken(tree: LlvmTree, reason: str) -> None:
    taken = take(made.request(made.PIN, *NEW), facts(tree))
    assert taken.provider == "source"
    assert reason in dict(taken.refused)["system"]
    message = refused(made.request(made.PIN, *NEW, provider="system"), facts(replace(tree, static=False)))
    assert str(tree.prefix) in message  # said of an explicit request, too


def test_a_folder_that_is_named_is_taken_or_refused() -> None:
    bare = made.llvm(packages=frozenset({"mlir"}))
    request = made.request(made.PIN, *NEW, dir="/usr/lib/llvm-19", any_commit=True)
    message = refused(request, facts(bare))
    assert "this LLVM 19.1.7 cannot build this Triton" in message
    assert "it lacks lld's CMake package (lib/cmake/lld)" in message
    assert "apt install liblld-19-dev\n" in message
    assert take(request, facts(made.llvm())).provider == "system"
    elsewhere = replace(bare, prefix=Path("/opt/llvm"))
    assert "apt install" not in refused(request, facts(elsewhere))


@pytest.mark.parametrize("commit", ["", made.OTHER])
def test_a_folder_that_is_named_but_not_the_pin_must_be_accepted(commit: str) -> None:
    tree = made.llvm(commit=commit)
    message = refused(made.request(dir="/usr/lib/llvm-19"), facts(tree))
    assert "is not known to be at the pin" in message
    assert "--any-commit" in message
    for changes in ({"any_commit": True}, {"provider": "system"}):
        taken = take(made.request(dir="/usr/lib/llvm-19", **changes), facts(tree))
        assert (taken.provider, taken.prefix) == ("system", tree.prefix)
    pinned = take(made.request(dir="/opt/llvm-pin"), facts(AT_THE_PIN))
    assert (pinned.provider, pinned.warnings) == ("system", ())


@pytest.mark.parametrize("provider", ["store", "prebuilt", "source"])
def test_a_folder_and_another_provider_contradict_each_other(provider: Provider) -> None:
    with pytest.raises(UsageError, match="contradict each other"):
        take(made.request(dir="/usr/lib/llvm-19", provider=provider), facts(made.llvm()))


def test_the_provider_system_says_what_lacks_and_not_what_was_just_typed() -> None:
    bare = made.llvm(packages=frozenset({"mlir"}), tools=frozenset({"mlir-tblgen"}))
    message = refused(made.request(made.PIN, *NEW, provider="system"), facts(bare))
    assert message.startswith("no installed LLVM fits this Triton")
    assert "lacks lld's CMake package (lib/cmake/lld)" in message
    assert "apt install liblld-19-dev clang-19 llvm-19-tools\n" in message
    assert "--provider system" not in message


def test_each_part_that_may_lack_has_a_package() -> None:
    nothing = made.llvm(packages=frozenset(), tools=frozenset(), static=False)
    request = made.request(made.PIN, *NEW)
    (hint,) = request.remedy(nothing)
    parts = "libmlir-19-dev liblld-19-dev clang-19 llvm-19-tools mlir-19-tools llvm-19-dev"
    assert hint.endswith(f"apt install {parts}")
    assert all(re.search(r"\((bin|lib)/", words) for words in request.lacks(nothing))


def test_shared_libraries_are_taken_where_they_were_asked_for() -> None:
    tree = made.llvm(commit=made.PIN, static=False, shared=True)
    assert made.request(shared=True).lacks(tree) == []
    assert made.request(shared=True).lacks(made.llvm()) == []  # does as well
    (missing,) = made.request().lacks(tree)
    assert missing.startswith("static component libraries")
    assert "`shared = true`" in missing
    (missing,) = made.request(shared=True).lacks(made.llvm(static=False))
    assert missing.startswith("shared or static component libraries")
    assert take(made.request(shared=True), facts(tree)).provider == "system"


@pytest.mark.parametrize("feature", sorted(NEW))
def test_old_tritons_do_not_ask_for_what_came_later(feature: str) -> None:
    bare = made.llvm(commit=made.PIN, packages=frozenset({"mlir"}), tools=frozenset({"mlir-tblgen"}))
    assert made.request().lacks(bare) == []
    assert len(made.request(made.PIN, feature).lacks(bare)) == 1


def test_every_installed_llvm_gets_its_line() -> None:
    message = dict(take(made.request(), facts(made.llvm(), made.llvm(Path("/opt/llvm"), made.OTHER))).refused)
    assert len(message["system"].splitlines()) == 2


def test_any_commit_takes_the_first_that_lacks_nothing() -> None:
    trees = (made.llvm(static=False), made.llvm(Path("/usr/lib/llvm-18"), version="18.1.8"))
    taken = take(made.request(any_commit=True), facts(*trees))
    assert (taken.provider, taken.prefix) == ("system", Path("/usr/lib/llvm-18"))
    (warning,) = taken.warnings
    assert warning.startswith("LLVM 18.1.8 in /usr/lib/llvm-18 is not the pin: its commit is not recorded")
    assert "Triton wants a66376b0dc3b (cmake/llvm-hash.txt)" in warning


def test_asked_for_by_name_a_near_one_is_taken_with_a_warning() -> None:
    taken = take(made.request(provider="system"), facts(made.llvm(commit=made.OTHER)))
    assert taken.provider == "system"
    assert "commit 0123456789ab, Triton wants a66376b0dc3b" in taken.warnings[0]


def test_a_short_commit_is_the_pin_as_far_as_it_goes() -> None:
    assert take(made.request(), facts(made.llvm(commit=made.PIN[:10].upper()))).provider == "system"
    assert made.request().fit(made.PIN[:6]) == "other"
    assert made.request().fit("") == "unknown"
    assert made.request(None).fit(made.PIN) == "unknown"


def test_prebuilt_by_name_says_why_not() -> None:
    request = replace(made.request(provider="prebuilt"), pin=WITH_SUMS)
    assert "the wanted commit is unknown" in refused(replace(request, pin=None), facts())
    elsewhere = facts(means=made.means(machine=made.machine(arch="ppc64le")))
    assert "upstream provides no build for Linux on ppc64le" in refused(request, elsewhere)
    message = refused(request, facts(offline="the server answered 404 Not Found"))
    assert "llvm-a66376b0-ubuntu-x64-2.tar.gz: the server answered 404" in message
    assert "let tritonsmith fetch and build LLVM: --provider source" in message


def test_an_archive_that_was_fetched_before_needs_no_server(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    request = replace(made.request(provider="prebuilt"), pin=WITH_SUMS)
    offline = facts(offline="Name or service not known", workspace=space)
    with pytest.raises(FactError, match="no LLVM matches"):
        choose(request, offline)
    space.downloads.mkdir()
    (space.downloads / "llvm-a66376b0-ubuntu-x64-2.tar.gz").touch()
    assert choose(request, offline).provider == "prebuilt"


def test_an_archive_that_was_extracted_before_needs_no_server(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    request = replace(made.request(provider="prebuilt"), pin=WITH_SUMS)
    there = facts(workspace=space, store=Store(space.llvm, space.root))
    taken = choose(request, there)
    stamps = {step.stamp for step in taken.plan.steps if step.stamp}
    (stamp,) = stamps
    offline = replace(there, reachable=lambda _: "Name or service not known")
    taken.prefix.mkdir(parents=True)
    stamp.path.write_text(stamp.key, encoding="utf-8")
    assert choose(request, offline).provider == "prebuilt"
    taken.prefix.rmdir()
    with pytest.raises(FactError, match="no LLVM matches"):
        choose(request, offline)


def test_a_checksum_of_the_users_stands_in_for_a_missing_one() -> None:
    taken = take(made.request(provider="prebuilt", sha256="cd" * 32), facts())
    downloads = [step for step in taken.plan.steps if isinstance(step, Download)]
    assert [step.sha256 for step in downloads] == ["cd" * 32]


def test_a_mirror_is_asked_instead_of_upstream() -> None:
    asked: list[str] = []

    def reachable(url: str) -> str | None:
        asked.append(url)
        return None

    request = replace(made.request(provider="prebuilt", prebuilt_url="https://mirror.example/llvm/"))
    take(replace(request, pin=WITH_SUMS), facts(reachable=reachable))
    assert asked == ["https://mirror.example/llvm/llvm-a66376b0-ubuntu-x64-2.tar.gz"]


def test_without_a_pin() -> None:
    with pytest.raises(UsageError, match="the wanted LLVM commit is unknown"):
        take(made.request(None, provider="source"), facts())
    message = refused(made.request(None), facts(made.llvm()))
    for provider in PROVIDERS:
        assert re.search(rf"^\W*(why:)?\s*{provider}: ", message, re.MULTILINE), provider
    assert "--provider system --llvm-dir" in message
    mine = facts(source=LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER))
    taken = take(made.request(None, provider="source", any_commit=True), mine)
    assert taken.commit == made.OTHER
    assert taken.warnings == ("the sources' commit is 0123456789ab; Triton wants unknown",)


def test_a_commit_of_the_fork_is_fetched_from_the_fork_when_upstream_lacks_it() -> None:
    fork = LlvmPin("7d5de3033187c8a3bb4d2e322f5462cdaf49808f", "cmake/llvm-hash.txt")
    taken = take(replace(made.request(), pin=fork), facts())
    fetch = next(step for step in taken.plan.steps if isinstance(step, GitFetch))
    assert fetch.urls == (
        "https://github.com/llvm/llvm-project",
        "https://github.com/triton-lang/llvm-project",
    )
    assert fetch.commit == fork.commit


def test_an_abbreviated_pin_cannot_be_fetched_but_may_be_in_a_clone() -> None:
    short = replace(made.request(provider="source"), pin=LlvmPin("c5dede880d17", "python/setup.py"))
    with pytest.raises(UsageError, match="needs its full hash"):
        take(short, facts())
    clone = facts(source=LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER))
    assert take(short, clone).commit == "c5dede880d17"
    assert "prebuilt" in refused(replace(short, settings=made.request().settings), facts())


def test_again_configures_even_if_nothing_changed() -> None:
    request = made.request(provider="source")
    once, again = (choose(request, facts(again=flag)).plan.steps for flag in (False, True))
    stamps = [[step.stamp for step in steps if step.title == "cmake"] for steps in (once, again)]
    assert [[stamp is not None and stamp.again for stamp in of] for of in stamps] == [[False], [True]]


def entry(request: LlvmRequest, **changes: Any) -> StoreEntry:
    """A build in the store that serves a request."""
    key = llvm_source.key(SourceTree(Path("/src"), made.PIN, ()), request, made.means())
    manifest = StoreManifest(
        name=key.name,
        kind="built",
        tree=key.name,
        commit=made.PIN,
        version="19.1.7",
        build_type=request.settings.build_type,
        assertions=request.settings.assertions,
        debug_info=request.settings.debug_info,
        targets=("AMDGPU", "NVPTX", "X86"),
        packages=("lld", "mlir"),
        tools=("FileCheck", "mlir-tblgen"),
        key=key.digest,
        scope="all",
    )
    return StoreEntry(key.name, made.store().path(key.name), "ready", replace(manifest, **changes))


def test_an_entry_of_the_store_comes_before_a_download_or_a_build() -> None:
    request = made.request()
    stored = entry(request)
    taken = take(request, facts(entries=(stored,)))
    assert (taken.provider, taken.prefix, taken.entry) == ("store", stored.path, stored.name)
    assert (taken.plan.steps, taken.describe) == ((), None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"commit": made.OTHER}, "it is at 0123456789ab"),
        ({"assertions": False}, "it has no assertions"),
        ({"build_type": "Debug"}, "it is Debug"),
        ({"targets": ("X86",)}, "code generators AMDGPU, NVPTX"),
    ],
)
def test_an_entry_that_does_not_serve_says_why(changes: dict[str, Any], why: str) -> None:
    request = made.request(provider="store")
    assert why in refused(request, facts(entries=(entry(request, **changes),)))


def test_what_an_entry_lacks_of_the_closure_is_built_in_it(tmp_path: Path) -> None:
    (tmp_path / "llvm").mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "build.ninja").touch()
    request = made.request()
    stored = replace(entry(request, scope="python-module", closures=(), source=str(tmp_path)), path=tree)
    probe = made.workspace().env("dev").probe
    given = facts(entries=(stored,), consumer=Consumer(lambda _: ((), probe), ("FileCheck",), made.OTHER))
    taken = take(request, replace(given, store=Store(tmp_path, tmp_path)))
    assert (taken.provider, taken.prefix) == ("store", tree)
    step, *_ = taken.plan.steps
    assert isinstance(step, BuildUsed)
    assert (step.tree, step.user) == (tree, probe)
    assert taken.describe is not None


def test_changed_sources_that_are_named_are_not_passed_over() -> None:
    request = made.request(source="/home/dev/llvm-project")
    mine = LlvmSource("checkout", "/home/dev/llvm-project", made.PIN, dirty=True)
    taken = take(request, facts(entries=(entry(request),), source=mine))
    assert taken.provider == "source"
    assert dict(taken.refused)["store"] == "the given sources have local changes: /home/dev/llvm-project"


def test_an_entry_at_the_pin_comes_before_a_newer_one_elsewhere() -> None:
    request = made.request(any_commit=True)
    pinned = entry(request, made="2024-01-01T00:00:00+00:00")
    other = replace(entry(request, commit=made.OTHER, made="2026-01-01T00:00:00+00:00"), name="other")
    assert take(request, facts(entries=(other, pinned))).entry == pinned.name
    (warning,) = take(request, facts(entries=(other,))).warnings
    assert "is at 0123456789ab; Triton wants a66376b0dc3b" in warning


def tree(tmp_path: Path, request: LlvmRequest, **changes: Any) -> StoreEntry:
    """A build tree in a store at `tmp_path`, whose sources lie there, too."""
    (tmp_path / "llvm").mkdir()
    (tmp_path / "build.ninja").touch()
    return replace(entry(request, source=str(tmp_path), **changes), path=tmp_path)


def test_a_named_target_is_built_in_an_entry_that_has_all_else(tmp_path: Path) -> None:
    request = made.request(ninja_targets=("mlir-opt",))
    stored = tree(tmp_path, request)
    taken = take(request, facts(entries=(stored,), store=Store(tmp_path, tmp_path)))
    step, *_ = taken.plan.steps
    assert isinstance(step, Run)
    assert step.argv[-1] == "mlir-opt"


@pytest.mark.parametrize(
    ("moved", "words"), [("to another commit", "are now at"), ("by a change", "have been modified")]
)
def test_an_entry_grows_only_from_the_sources_that_it_was_built_from(
    tmp_path: Path, moved: str, words: str
) -> None:
    source = tmp_path / "llvm-project"
    source.mkdir()
    (source / "a.cpp").write_text("int a;\n", encoding="utf-8")
    with Repo.init(source) as repo:
        repo.index.add(["a.cpp"])
        commit = repo.index.commit("LLVM", author=SOMEBODY, committer=SOMEBODY).hexsha
        request = made.request(commit, scope="all", provider="store")
        stored = tree(source, request, commit=commit, scope="closure")
        given = facts(entries=(stored,), store=Store(tmp_path, tmp_path))
        assert take(request, given).plan.steps
        (source / "a.cpp").write_text("int b;\n", encoding="utf-8")
        if moved == "to another commit":
            repo.index.add(["a.cpp"])
            repo.index.commit("Later", author=SOMEBODY, committer=SOMEBODY)
    assert words in refused(request, given)


@pytest.mark.parametrize("provider", ["store", "source"])
def test_nothing_is_built_in_a_store_that_is_read_only(tmp_path: Path, provider: Provider) -> None:
    request = made.request(provider=provider)
    stored = tree(tmp_path, request, scope="python-module")
    probe = made.workspace().env("dev").probe
    consumer = Consumer(lambda _: ((), probe), ())
    read_only = replace(made.store(), writable=False)
    assert "read-only" in refused(request, facts(entries=(stored,), consumer=consumer, store=read_only))


@pytest.mark.parametrize("commit", [made.PIN, ""])
def test_a_build_that_is_configured_already_stays_published(tmp_path: Path, commit: str) -> None:
    """Taking the manifest away would hide it from others for as long as Ninja looks around.

    Where nobody knows whether the sources changed, Ninja may build it anew.
    """
    request = made.request(provider="source", any_commit=True)
    space = Workspace(tmp_path)
    given = facts(
        workspace=space, store=Store(space.llvm, tmp_path), source=LlvmSource("checkout", "/src/llvm", commit)
    )

    def retracted() -> bool:
        step = choose(request, given).plan.steps[0]
        return isinstance(step, Remove) and step.paths[0].suffix == ".json"

    assert retracted()
    for step in choose(request, given).plan.steps:
        if step.stamp:
            step.stamp.path.parent.mkdir(parents=True, exist_ok=True)
            step.stamp.path.write_text(step.stamp.key, encoding="utf-8")
            if step.stamp.result:
                step.stamp.result.touch()
    assert retracted() is (commit == "")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": "adopted"}, "the entry is adopted and was configured where it was built"),
        ({"kind": "imported"}, "the entry is imported"),
        ({"commit": "", "key": ""}, "the commit of its sources is unknown"),
        ({"key": "0" * 16}, "built with another compiler or other options"),
    ],
)
def test_what_is_not_configured_anew_is_taken_as_it_is_and_says_why(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    request = made.request(provider="store", any_commit=True)
    (tmp_path / "llvm").mkdir()
    stored = replace(entry(request, **{"source": str(tmp_path), **changes}), path=tmp_path)
    given = facts(entries=(stored,), store=Store(tmp_path, tmp_path))
    taken = choose(request, replace(given, again=True))
    assert taken.plan.steps == ()
    assert f"{stored.name} is not reconfigured: {why}" in taken.warnings[-1]


def test_an_installed_one_is_not_configured_anew() -> None:
    taken = choose(made.request(), facts(AT_THE_PIN, again=True))
    assert taken.warnings == ("--reconfigure has no effect: the LLVM in /opt/llvm-pin is not built here",)


def test_an_entry_of_the_tools_own_is_configured_anew(tmp_path: Path) -> None:
    request = made.request(provider="store")
    stored = tree(tmp_path, request)
    given = facts(entries=(stored,), store=Store(tmp_path, tmp_path))
    taken = choose(request, replace(given, again=True))
    assert (taken.provider, taken.entry, taken.warnings) == ("store", stored.name, ())
    assert isinstance(taken.plan.steps[0], Remove)  # the manifest
    assert "cmake" in [step.title for step in taken.plan.steps]


def test_an_entry_that_lacks_a_program_of_the_build_is_not_taken() -> None:
    """An installed LLVM without its utilities, adopted."""
    request = made.request(made.PIN, "needs-filecheck", provider="store")
    stored = entry(request, kind="adopted", tools=("mlir-tblgen",))
    assert "programs FileCheck" in refused(request, facts(entries=(stored,)))


def test_the_entry_of_the_very_key_comes_first() -> None:
    request = made.request()
    other = replace(entry(request, key="0" * 16, made="2027-01-01T00:00:00+00:00"), name="other")
    own = entry(request, made="2026-01-01T00:00:00+00:00")
    assert take(request, facts(entries=(other, own))).entry == own.name


def test_a_build_tree_whose_sources_are_gone_is_not_taken(tmp_path: Path) -> None:
    """Half of the headers are in them."""
    request = made.request(provider="store")
    gone = entry(request, source=str(tmp_path / "gone"))
    assert "thus its headers" in refused(request, facts(entries=(gone,)))
