"""Group `sources`: the checkout, its pins, and the LLVM in use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tritonsmith.build.triton import source as triton_source
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError
from tritonsmith.doctor.check import (
    DoctorContext,
    Finding,
    NotApplicableError,
    check,
    error,
    note,
    of_error,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import git, llvm_tree
from tritonsmith.facts.checkout import LlvmPin, TritonCheckout, triton_release
from tritonsmith.facts.llvm_tree import LlvmTree

_WHOLE = 40  # hex digits of a commit
_BUILT_WITH = {"FileCheck", "clang++"}  # programs of the LLVM that some era's build uses
_NO_CHECKOUT = "no Triton checkout found"


@check("sources.checkout", "the checkout: version, commit, changes")
def checkout(subject: DoctorContext) -> Iterator[Finding]:
    """Report the version and commit of the checkout, and its distance from upstream."""
    tree = subject.checkout
    if subject.unreadable:
        yield of_error(subject.unreadable)
        return
    if tree is None:
        raise NotApplicableError(_NO_CHECKOUT)
    parts = [f"Triton {tree.version} (builds like {triton_release(tree.version).version})"]
    parts.append(f"commit {tree.commit[:12]}" if tree.commit else "not under git")
    parts += ["changed"] if tree.dirty else []
    # Since 2.35.2 git refuses repositories of other users, the usual case in a container that
    # mounts the host's folder.
    if tree.git_problem:
        yield warning(
            f"{parts[0]}; git fails: {tree.git_problem}",
            str(tree.root),
            affects="it is unknown whether a build belongs to these sources",
            remedy="repair the repository; in a container, if another user owns the folder, mark it as safe",
            commands=(shlex.join(("git", "config", "--global", "--add", "safe.directory", str(tree.root))),)
            if "ownership" in tree.git_problem
            else (),
        )
        return
    moved = git.divergence(tree.root) if tree.commit else None
    if moved and any(moved):
        parts.append(f"{moved[1]} ahead and {moved[0]} behind its upstream")
    yield ok(", ".join(parts), tree.root)


@check("sources.pins", "every LLVM that the checkout pins, against the one in use")
def pins(subject: DoctorContext) -> Iterator[Finding]:
    """Compare each pinned LLVM with the one in use; a commit may pin several, and near is not enough."""
    tree = subject.need_checkout()
    if not tree.pins:
        yield warning("no pin found", str(tree.root), affects="no LLVM can be chosen for certain")
    for pin in tree.pins:
        yield _core(pin, subject) if pin.role == "core" else _other(pin)


def _core(pin: LlvmPin, subject: DoctorContext) -> Finding:
    name = subject.named if not subject.settings.triton.wheel else ""  # a wheel has no build to set up
    table = configs.load("triton-eras")["llvm-source"]
    # Release branches since 3.5 may pin a commit of Triton's fork of LLVM. A clone of LLVM lacks it, so
    # without this remark the pin looks wrong.
    forked = any(llvm_tree.same_commit(pin.commit, commit) for commit in table["fork-pins"])
    text = f"{pin.file} pins {pin.commit[:12]}" + (
        f", a commit of {table['repositories'][-1]}" if forked else ""
    )
    tree = subject.llvm
    if tree is None:
        return note(f"{text}; no LLVM is set up", commands=(command("setup-mlir", env=name),))
    if llvm_tree.same_commit(tree.commit, pin.commit):
        return ok(text, tree.prefix)
    return warning(
        f"{text}; LLVM {tree.version} is {tree.commit[:12] or 'of an unknown commit'}",
        str(tree.prefix),
        affects="files that use an API that changed in between do not compile (triton#9776)",
        remedy="use the LLVM at the pin",
        commands=(command("setup-mlir", env=name),),
    )


def _other(pin: LlvmPin) -> Finding:
    return note(
        f"{pin.file} pins {pin.commit[:12]} for the backend {pin.role}",
        affects="its code generator is built separately and ignores LLVM_SYSPATH (triton#11485)",
    )


@check("sources.branches", "branches named like commits")
def branches(subject: DoctorContext) -> Iterator[Finding]:
    """Find branches named like commits, which `git checkout -b HASH` creates at HEAD."""
    looked = [root for root in _repositories(subject) if git.common_folder(root)]
    if not looked:
        raise NotApplicableError("no git repository of Triton or LLVM found")
    misleading = [
        error(
            f"the branch {name[:12]} is at {commit[:12]}",
            str(root),
            affects="builds of that name are of another commit (triton#5521)",
            remedy="rename the branch, and check out the commit without -b",
            commands=(
                shlex.join(("git", "-C", str(root), "branch", "-m", name, f"was-{name[:8]}")),
                shlex.join(("git", "-C", str(root), "checkout", "--detach", name)),
            ),
        )
        for root in looked
        for name, commit in git.branches(root).items()
        if _misleads(root, name, commit)
    ]
    yield from misleading or [ok(f"none in {', '.join(map(str, looked))}")]


def _misleads(root: Path, name: str, commit: str) -> bool:
    """Report whether a branch has the name of another commit."""
    if not re.fullmatch(r"[0-9a-f]{7,40}", name) or commit.startswith(name):
        return False
    # A full hash, or fewer digits that name an object of git: git prefers the branch, and warns at most.
    # Fewer digits alone prove nothing: 20251101 may be a date.
    return len(name) == _WHOLE or git.has_object(root, name)


def _repositories(subject: DoctorContext) -> Iterator[Path]:
    # LLVM's sources, too: the pin is a hash, which people check out there by hand (triton#5521).
    if subject.checkout:
        yield subject.checkout.root
    named = subject.settings.llvm.source
    if named and Path(named).expanduser().is_dir():
        yield Path(named).expanduser()
    if subject.llvm and (source := llvm_tree.source_of(subject.llvm.prefix)):
        yield source


@check("sources.llvm", "what this Triton needs of the LLVM in use")
def llvm(subject: DoctorContext) -> Iterator[Finding]:
    """Report build type, assertions, targets, lld, clang++, FileCheck, RTTI, shared or static."""
    tree = subject.llvm
    if tree is None:
        yield _no_llvm(subject)
        return
    if subject.checkout:
        missing = triton_source.request_for(subject.settings, subject.checkout).lacks(tree)
        for words in missing:
            yield error(
                f"LLVM {tree.version} lacks {words}",
                str(tree.prefix),
                affects=f"Triton {subject.checkout.version} does not build against it",
                remedy="install the missing parts, or build a complete one",
                commands=(command("setup-mlir", env=subject.named, provider="source"),),
            )
        if missing:
            return
    # Upstream's prebuilt LLVM has them, and those of distributions usually do not: -debug-only is not even
    # an option there.
    if tree.assertions:
        yield ok(_describe(tree), tree.prefix)
    else:
        yield note(
            _describe(tree),
            str(tree.prefix),
            affects="no internal checks of LLVM and MLIR, no -debug-only; upstream's prebuilt has both",
            remedy="to debug passes, use one with assertions",
            commands=(command("setup-mlir", env=subject.named, provider="source", assertions=True),),
        )


def _no_llvm(subject: DoctorContext) -> Finding:
    named = subject.llvm_prefix
    if named is None:
        return skipped("no LLVM is set up")
    # builds.llvm reports that as an error; a second one would send the reader to look for two causes.
    if str(named) == (subject.receipt("setup-mlir") or {}).get("prefix"):
        return skipped("the LLVM that was set up no longer exists (see builds.llvm)")
    return error(
        "no LLVM in this folder",
        str(named),
        affects="Triton cannot be built: `dir` under [llvm], or LLVM_SYSPATH, is not an LLVM (triton#4463)",
        remedy="name the prefix that has lib/cmake/llvm",
    )


def _describe(tree: LlvmTree) -> str:
    parts = [f"LLVM {tree.version}", tree.build_type or "unknown build type"]
    parts.append(f"assertions {'on' if tree.assertions else 'off'}, RTTI {'on' if tree.rtti else 'off'}")
    parts.append(_linked(tree))
    ours = sorted(tree.targets & {"NVPTX", "AMDGPU"})
    parts.append(
        f"targets {' '.join(ours) or 'without NVPTX and AMDGPU'} and {len(tree.targets) - len(ours)} more"
    )
    parts.append(f"with {' '.join(sorted(tree.packages | (tree.tools & _BUILT_WITH)))}")
    return ", ".join(parts)


def _linked(tree: LlvmTree) -> str:
    if tree.dylib:
        return "MLIR links the shared libLLVM (build/triton/one_llvm.cmake)"
    return "static" if tree.static or not tree.shared else "shared components"


@check("sources.worktrees", "worktrees with different pins that share one LLVM folder")
def several_pins(subject: DoctorContext) -> Iterator[Finding]:
    """Find worktrees whose pip builds share one LLVM folder."""
    tree = subject.need_checkout()
    pinned = dict(_pinned(tree))
    # Upstream's own builds keep one LLVM in `$TRITON_HOME/.triton/llvm`; another pin deletes it.
    home = Path(subject.environ.get("TRITON_HOME") or Path.home())
    slot = home / ".triton" / "llvm"
    if len(set(pinned.values())) <= 1 or not slot.is_dir():
        yield ok(f"no two pins share an LLVM folder (worktrees: {len(pinned)})", tree.root)
        return
    yield warning(
        "; ".join(f"{root} pins {pin}" for root, pin in pinned.items()),
        str(slot),
        affects="pip builds share this folder, and each deletes the other's LLVM (triton#10540)",
        remedy="set a TRITON_HOME for each pin (3.2 and later); tritonsmith itself does not use the folder",
        commands=(f"export TRITON_HOME={shlex.quote(str(tree.root / '.triton-home'))}",),
    )


def _pinned(tree: TritonCheckout) -> Iterator[tuple[Path, str]]:
    for root in git.worktrees(tree.root):
        # A merge may be unfinished in another worktree.
        with suppress(FactError):
            if pin := checkouts.pin_of(root):
                yield root, pin.commit[:12]
