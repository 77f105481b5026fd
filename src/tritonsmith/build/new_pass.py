"""`pass.new`: the files of a new pass, in a worktree of its own, in the checkout itself, or as a plugin.

Upstream declares passes in two ways, and a checkout may have both. Where `Passes.h` has GEN_PASS_DECL,
TableGen generates and declares the function that creates the pass; elsewhere `Passes.h` declares that
function by hand, and the entry names it as the constructor.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas import mentions, tablegen
from tritonsmith.atlas.mentions import PythonBinding
from tritonsmith.atlas.source_files import Definition, SourceFiles
from tritonsmith.build import worktree_add
from tritonsmith.build.triton import commands, source
from tritonsmith.build.worktree_add import WorktreeRecord, WorktreeRequest
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Patch, Plan, Step, Write
from tritonsmith.facts import git

PHASE = "files of the pass"
_TOOL = "bin/RegisterTritonDialects.h"
_DECLARED = re.compile(r"^#define GEN_PASS_DECL$", re.MULTILINE)
_REGISTERED = re.compile(r"^#define GEN_PASS_REGISTRATION$", re.MULTILINE)
_MAKER = re.compile(r"^std::unique_ptr<(?:mlir::)?Pass>\s+create\w+\([^;]*\);\n", re.MULTILINE)
_CMAKE_SOURCE = re.compile(r"^ *([\w/]+\.cpp)\n", re.MULTILINE)
# Comments are matched first, so that braces and `namespace` inside them do not count.
_SCOPE = re.compile(r"//[^\n]*|/\*.*?\*/|\bnamespace\s+([\w:]*)\s*\{|(\{)|(\})", re.DOTALL)
_WIDTH = 80  # columns, as in the checkout's clang-format configuration
_FOLDER = Path(__file__).with_name("pass_templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST = 60  # characters of a name, from which names of files and classes are derived
_LIBRARY = "import triton._C.libtriton as it; print(it.__file__)"
_SOURCE, _LLVM = "CHECKOUT", "LLVM"  # placeholders for folders that the user has to fill in


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
    design = design_pass(root, name, family)
    clone = worktree_add.clone_of(settings, space, cwd)
    check_unchanged(root, design)
    title = f"the pass {design.argument}"
    if here:
        return PreparedPass(design, root, Plan(title, design.steps(root)), settings.name, None)
    # A branch of its own: the user's work in the checkout, and its build, stay as they are.
    own = f"pass-{name}"
    request = WorktreeRequest(git.head(root, dirt=False).commit, own, branch=own, env=env)
    worktree = worktree_add.prepare(request, clone, space)
    where = worktree.record.folder
    refuse_to_overwrite({where / name: text for name, text in design.written})
    plan = Plan(title, (*worktree.plan.steps, *design.steps(where)))
    return PreparedPass(design, where, plan, own, worktree.record)


def following(prepared: PreparedPass, space: Workspace, *, llvm: bool) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose; `llvm` tells whether the environment has an LLVM."""
    tool, test = (
        shlex.quote(str(path))
        for path in (
            space.env(prepared.env).build / "bin" / "triton-opt",
            prepared.root / prepared.design.test,
        )
    )
    argument = prepared.design.argument
    # In the checkout itself the environment stays: without its flags, another build type would be built.
    kind = None if prepared.worktree else commands.flags_of_last_build(prepared.env).get("triton.build-type")
    dump = f"{argument}-dump"
    return (
        *(() if llvm else (("LLVM", command("setup-mlir", env=prepared.env)),)),
        ("build", command("build-triton", env=prepared.env, build_type=kind)),
        ("test", command("test-triton", prepared.design.test, env=prepared.env)),
        (
            "print",
            f"{tool} {test} -{argument} -cse --mlir-print-ir-before-all -o /dev/null 2> {argument}.log",
        ),
        ("record", command("passes.dump --from-log", f"{argument}.log", out=dump)),
        ("replay", command("passes.replay", dump, argument, env=prepared.env)),
    )


@dataclass(frozen=True)
class NewPass:
    """A pass to be written.

    Attributes:
        argument: argument of `triton-opt`: `tritongpu-hoist-loads`.
        binding: the call in Python: `passes.ttgpuir.add_hoist_loads`.
        cpp: its C++ file, relative to the checkout.
        test: its lit test, relative to the checkout.
        written: new files and their texts.
        changed: existing files, with their texts before and after.
    """

    argument: str
    binding: str
    cpp: str
    test: str
    written: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str, str], ...]

    def steps(self, root: Path) -> tuple[Step, ...]:
        """Return the steps that write the files into a checkout."""
        return (
            *(Write(root / name, text, phase=PHASE) for name, text in self.written),
            *(Patch(root, name, before, after, phase=PHASE) for name, before, after in self.changed),
        )


@dataclass(frozen=True)
class PassFamily:
    """A family of passes in the same files: a row of `configs/pass-families.toml`."""

    about: str
    argument: str
    record: str
    td: str
    lib: str
    tests: tuple[str, ...]

    @property
    def header(self) -> str:
        """The path of `Passes.h`, relative to the checkout."""
        return self.td.removesuffix("td") + "h"

    @property
    def include(self) -> str:
        """The path of `Passes.h` in C++ includes."""
        return self.header.partition("include/")[2]


def families() -> dict[str, PassFamily]:
    """Return all families, by name."""
    rows = configs.load("pass-families")
    return {name: configs.as_dataclass(PassFamily, row) for name, row in rows.items() if name != "schema"}


def family_of(name: str) -> PassFamily:
    """Return a family by its name.

    Raises:
        UsageError: the family does not exist.
    """
    known = families()
    if name not in known:
        raise UsageError(f"unknown family {name!r}", hints=did_you_mean(name, known))
    return known[name]


def design_pass(root: Path, name: str, family: str) -> NewPass:
    """Design the files and changes of a new pass in a checkout.

    Args:
        root: the checkout.
        name: name of the pass, without the prefix of the family's names.
        family: family that it belongs to.

    Raises:
        UsageError: the name is taken or not valid, or the family does not exist.
        FactError: the checkout does not have that family, or its files are not as expected.
    """
    return _Design(SourceFiles(root), checked_name(name), family, family_of(family)).complete()


def check_unchanged(root: Path, design: NewPass) -> None:
    """Refuse to change files that have uncommitted changes.

    Raises:
        FactError: git reports that a file differs from HEAD, or does not answer.
    """
    # Mixed with other changes, those of the new pass could not be taken back by git.
    names = [name for name, _, _ in design.changed]
    status = git.look(root, "status", "--porcelain", "--", *names, files=True)
    if status is None or status.code:
        why = status.err.strip() if status else "git does not answer"
        raise FactError("cannot tell which files have uncommitted changes", where=root, why=why)
    if status.out.strip():
        raise FactError(
            "files that a new pass changes have uncommitted changes",
            where=root,
            why=status.out.rstrip(),
            hints=["commit them first, or set them aside: git stash"],
        )


class _Design:
    """The parts of a new pass, derived from the passes of its family."""

    def __init__(self, tree: SourceFiles, name: str, label: str, family: PassFamily) -> None:
        self._tree, self._name, self._label, self._family = tree, name, label, family
        self._class = in_camel_case(name)
        self._record = family.record + self._class
        if not (tree.root / family.td).is_file():
            have = [other for other, row in families().items() if (tree.root / row.td).is_file()]
            hints = [f"it has: {', '.join(have)}"] if have else ["give a checkout: --source PATH"]
            raise FactError(f"this checkout has no family {label}", where=tree.root / family.td, hints=hints)
        self._header = self._text(family.header)
        # With GEN_PASS_DECL, MLIR's TableGen declares the constructors itself; older
        # headers declare each by hand.
        declared = _DECLARED.search(self._header)
        self._by_hand = None if declared else self._last(_MAKER, family.header, "the declaration of a pass")
        at = declared.start() if declared else self._last(_MAKER, family.header, "").start()
        self._namespace = namespace_at(self._header, at)
        self._maker = f"create{self._record}" + ("Pass" if self._by_hand else "")

    def complete(self) -> NewPass:
        family, cpp = self._family, f"{self._family.lib}/{self._class}.cpp"
        folder = next((path for path in family.tests if (self._tree.root / path).is_dir()), family.tests[-1])
        test = f"{folder}/{self._name}.mlir"
        passes = [
            definition
            for definition in tablegen.read_td(self._tree)
            if definition.kind == "pass" and definition.file == family.td
        ]
        if not passes:
            raise FactError("this file defines no passes", where=self._tree.root / family.td)
        self._refuse_a_double(cpp, test)
        values = self._values()
        anchor, bound = self._anchor(passes)
        changed = [
            (family.td, self._entry(passes, values)),
            (f"{family.lib}/CMakeLists.txt", self._cmake()),
            (anchor.place.file, self._bound(anchor)),
        ]
        if self._by_hand:
            at = self._by_hand.end()
            line = f"\nstd::unique_ptr<Pass> {self._maker}();\n"
            changed.append((family.header, self._header[:at] + line + self._header[at:]))
        if registered := self._registered({definition.record for definition in passes}):
            changed.append((_TOOL, registered))
        return NewPass(
            argument=values["ARGUMENT"],
            binding=bound,
            cpp=cpp,
            test=test,
            written=(
                (cpp, render_template("pass.cpp", values)),
                (test, render_template("test.mlir", values)),
            ),
            changed=tuple((name, self._text(name), after) for name, after in changed),
        )

    def _values(self) -> dict[str, str]:
        hand = self._by_hand
        values = {
            "ARGUMENT": self._family.argument + self._name,
            "ATTRIBUTE": in_snake_case(self._name),
            "CLASS": self._class,
            "HEADER": self._family.include,
            "MAKER": self._maker,
            "NAMESPACE": self._namespace,
            "RECORD": self._record,
            "SUMMARY": self._name.replace("-", " "),
            "UPPER": self._record.upper(),
        }
        maker = f'\n  let constructor = "{self._namespace}::{self._maker}()";\n' if hand else ""
        return {
            **values,
            "CONSTRUCTOR": maker,
            "CREATE": render_template("create.cpp", values) if hand else "",
        }

    def _refuse_a_double(self, cpp: str, test: str) -> None:
        root = self._tree.root
        there = [root / name for name in (cpp, test) if (root / name).exists()]
        named = [file for file in self._tree.having(".td") if self._is_taken(self._tree.text(file))]
        for where in (*there, *(root / file for file in named)):
            hints = ["give the pass another name"]
            raise UsageError(f"a pass {self._name!r} already exists", where=where, hints=hints)

    def _is_taken(self, text: str) -> bool:
        argument = re.escape(self._family.argument + self._name)
        return bool(re.search(rf'\bdef\s+{self._record}\b|"{argument}"', text))

    def _entry(self, passes: list[Definition], values: dict[str, str]) -> str:
        lines = self._text(self._family.td).split("\n")
        # After the last pass: the end of the file may hold an #endif of the include guard.
        at = max(definition.end for definition in passes)
        new = render_template("entry.td", values).removesuffix("\n").split("\n")
        return "\n".join((*lines[:at], *new, *lines[at:]))

    def _cmake(self) -> str:
        name = f"{self._family.lib}/CMakeLists.txt"
        text = self._text(name)
        # Files of subfolders are listed by their path, and would break the
        # alphabetical order of the others.
        sources = [match for match in _CMAKE_SOURCE.finditer(text) if "/" not in match[1]]
        if not sources:
            raise FactError("this file names no C++ sources", where=self._tree.root / name)
        own = f"{self._class}.cpp"
        after = next((match for match in sources if match[1] > own), None)
        at = after.start() if after else sources[-1].end()
        return f"{text[:at]}  {own}\n{text[at:]}"

    def _anchor(self, passes: list[Definition]) -> tuple[PythonBinding, str]:
        """Return the last binding in the file that has most of them, and the new pass's call in Python."""
        known = mentions.bindings(self._tree)
        bound = [binding for definition in passes for binding in mentions.bindings_of_pass(known, definition)]
        if not bound:
            raise FactError("no pass of this family is bound to Python", where=self._tree.root)
        # A family's passes may be bound in several files, as with common passes: the
        # new one goes where most are.
        groups = Counter((binding.place.file, binding.words) for binding in bound)
        (file, words), _ = groups.most_common(1)[0]
        last = max(
            (binding for binding in bound if (binding.place.file, binding.words) == (file, words)),
            key=lambda binding: binding.place.line,
        )
        own = f"add_{in_snake_case(self._name)}"
        if self._is_chained(last):
            return last, f"pm.{own}_pass"
        module = f"{'.'.join(words[:-1])}.passes.{words[-1]}" if len(words) > 1 else f"passes.{words[0]}"
        return last, f"{module}.{own}"

    def _is_chained(self, anchor: PythonBinding) -> bool:
        line = self._text(anchor.place.file).split("\n")[anchor.place.line - 1]
        return line.lstrip().startswith(".def(")

    def _bound(self, anchor: PythonBinding) -> str:
        lines = self._text(anchor.place.file).split("\n")
        at = anchor.place.line - 1
        maker, name = f"{self._namespace}::{self._maker}", f"add_{in_snake_case(self._name)}"
        if self._is_chained(anchor):
            new = [
                f'      .def("{name}_pass",',
                "           [](mlir::PassManager &self) {",
                f"             self.addPass({maker}());",
                "           })",
            ]
        # Each era binds in its own way: methods of the pass manager, lambdas in a module, or a macro. The
        # new line imitates its neighbour, which is known to compile.
        elif "ADD_PASS_WRAPPER_0" in anchor.body or any("ADD_PASS_WRAPPER_0" in line for line in lines):
            single = f'  ADD_PASS_WRAPPER_0("{name}", {maker});'
            broken = [f'  ADD_PASS_WRAPPER_0("{name}",', f"{' ' * 21}{maker});"]
            new = [single] if len(single) <= _WIDTH else broken
        else:
            new = [
                f'  m.def("{name}", [](mlir::PassManager &pm) {{',
                f"    pm.addPass({maker}());",
                "  });",
            ]
        return "\n".join((*lines[:at], *new, *lines[at:]))

    def _registered(self, records: set[str]) -> str:
        """Return the tool's file with a line for the pass, if it registers the family's passes singly."""
        text = self._text(_TOOL)
        begin = _REGISTERED.search(self._header)
        space = namespace_at(self._header, begin.start()) if begin else "mlir"
        # triton-opt either registers a family in one call, which includes the new
        # pass, or each pass by name.
        single = re.compile(rf"^ *{space}::register(\w+)\(\);\n", re.MULTILINE)
        mine = [match for match in single.finditer(text) if match[1] in records]
        if mine:
            at = mine[-1].end()
            return f"{text[:at]}  {space}::register{self._record}();\n{text[at:]}"
        if not re.search(rf"\bregister{self._family.record}Passes\(\)", text):
            what = "triton-opt does not register the passes of this family"
            raise FactError(what, where=self._tree.root / _TOOL)
        return ""

    def _last(self, sign: re.Pattern[str], file: str, what: str) -> re.Match[str]:
        matches = [*sign.finditer(self._header)]
        if not matches:
            raise FactError(
                f"this file does not have what a pass needs: {what}", where=self._tree.root / file
            )
        return matches[-1]

    def _text(self, name: str) -> str:
        """Return the exact text of a file that is to be changed."""
        path = self._tree.root / name
        try:
            text = untrusted.read_bytes(path).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise FactError(
                "cannot read a file that a new pass changes", where=path, why=str(error)
            ) from error
        # A patch has LF, and would give the file mixed line ends; behind a link is another tree
        # than the one that was named.
        if not path.resolve().is_relative_to(self._tree.root.resolve()) or "\r" in text:
            why = "lines end in CR LF" if "\r" in text else f"a link to {path.resolve()}"
            raise FactError("cannot change this file of the checkout", where=path, why=why)
        return text


def namespace_at(text: str, at: int) -> str:
    """Return the C++ namespace at an offset, as `mlir::triton::gpu`; empty outside any."""
    stack: list[str] = []
    for match in _SCOPE.finditer(text, 0, at):
        if match[1] is not None or match[2]:
            stack.append(match[1] or "")
        elif match[3] and stack:
            stack.pop()
    return "::".join(name for name in stack if name)


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
    name = checked_name(request.name)
    module = in_snake_case(name)
    values = {
        "ARGUMENT": name,
        "ATTRIBUTE": module,
        "CLASS": in_camel_case(name),
        "MODULE": module,
        "NAME": name,
        "STAGE": request.stage,
        "SUMMARY": name.replace("-", " "),
        "TRITON": request.triton or f"of {request.python}",
        "VARIABLE": f"{module.upper()}_LIBRARY",
    }
    values["COMMANDS"] = "".join(f"    {typed}\n" for _, typed in after_plugin(request, folder))
    # Templates of Python end in `.in`: linters would read them as Python.
    files = {
        f"{values['CLASS']}.cpp": "plugin.cpp",
        "CMakeLists.txt": "CMakeLists.txt",
        "README.md": "README.md",
        f"{module}.py": "plugin.py.in",
        f"test_{module}.py": "test_plugin.py.in",
        "lit.cfg.py": "lit.cfg.py.in",
        f"{name}.mlir": "test.mlir",
    }
    texts = {folder / file: render_template(f"plugin/{source}", values) for file, source in files.items()}
    refuse_to_overwrite(texts)
    steps = tuple(Write(path, text, phase="plugin") for path, text in texts.items())
    return Plan(f"the plugin {name}", steps)


def after_plugin(request: PluginRequest, folder: Path) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose."""
    python, where, module = request.python, shlex.quote(str(folder)), in_snake_case(request.name)
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


def render_template(name: str, values: dict[str, str]) -> str:
    """Return a template's text with the values filled in.

    Args:
        name: its path relative to the folder of templates.
        values: text for each `@NAME@`.

    Raises:
        KeyError: the template uses a name without a value, which is a bug.
    """
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)


def checked_name(name: str) -> str:
    """Check the name of a pass, as in `hoist-loads`, and return it.

    Raises:
        UsageError: the name is not valid for classes and files.
    """
    if _NAME.fullmatch(name) and len(name) <= _LONGEST:
        return name
    raise UsageError(
        f"not a valid name of a pass: {name[:_LONGEST]!r}",
        why=f"lowercase letters, digits and single dashes, a letter first, at most {_LONGEST} characters",
        hints=["for example: hoist-loads, which becomes HoistLoads.cpp and add_hoist_loads"],
    )


def in_camel_case(name: str) -> str:
    """Convert to camel case: `HoistLoads` for `hoist-loads`."""
    return "".join(word.capitalize() for word in name.split("-"))


def in_snake_case(name: str) -> str:
    """Convert to snake case: `hoist_loads` for `hoist-loads`."""
    return name.replace("-", "_")


def refuse_to_overwrite(texts: Mapping[Path, str]) -> None:
    """Refuse to overwrite files that an interrupted run left, or that have been edited.

    Raises:
        UsageError: a file exists with another text.
    """
    for path, text in texts.items():
        # The same text is no conflict: a command that was killed can be repeated.
        if path.exists() and (not path.is_file() or untrusted.read_text(path) != text):
            hints = ["give the pass another name", "or go on there: this file has been changed since"]
            raise UsageError("a file of this pass already exists", where=path, hints=hints)
