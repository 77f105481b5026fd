"""Kernels files in TOML: docs/kernels.md.

[arguments]                       # of all kernels below, by the parameter's name: see signatures
"*stride*" = "i32:16"

[[kernel]]
file = "matmul.py"                # beside this file; or in a repository, where --source names one
kernel = "matmul"                 # optional if the file has only one
signature = "*fp16:16,*fp16:16"   # or arguments: the entry of each parameter, by a pattern of its name
arguments = { BLOCK = "128", "*_ptr" = "*fp16:16" }
targets = ["h100", "mi300x"]      # optional: the default is those of the flags
options = { num_warps = 8 }
versions = ">=3.4"                # optional: the Tritons that the kernel is for; the default is all

`kernel.capture` writes such a file, with more keys.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from tritonsmith.compiler import signature, source, source_tree, targets
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import ConfigError, UsageError, did_you_mean

if TYPE_CHECKING:
    from tomlkit.items import Table

SUFFIX = ".toml"
# An unknown key is refused, with the key that was meant: a misspelled `option` would compile something else.
_TOP: Mapping[str, type] = {"schema": int, "arguments": dict, "kernel": list, "captured": dict}
_KEYS: Mapping[str, type] = {
    "file": str,
    "kernel": str,
    "name": str,
    "signature": str,
    "arguments": dict,
    "targets": list,
    "options": dict,
    "versions": str,
    "sha256": str,
    "count": int,
    "grid": list,
    "where": list,
    "module": str,
    "configs": list,
    "largest": dict,
    "launch": dict,
}
_KINDS = {int: "a number", float: "a number", str: "a text", dict: "a table", list: "a list"}
_PLURALS: Mapping[type, str] = {str: "texts", dict: "tables", list: "lists"}
# Keys whose list gets one line for each part: a line of thirty configs would be hard to read and to diff.
_SPLIT_KEYS = ("configs", "notes")


@dataclass(frozen=True)
class ListedKernel:
    """One `[[kernel]]` entry.

    Attributes:
        where: the TOML file and the entry, for errors.
        file: as it is written; relative to the TOML file, or to a repository.
        kernel: name of the function; empty for the only one in the file.
        name: the kernel's name in tables and folders; unique in the file.
        signature: empty if `arguments` replace it.
        arguments: pattern of a parameter's name to an entry of a signature; the first match counts.
        targets: those of the flags if empty.
        options: options of the backend.
        versions: the Triton versions that it is for.
        sha256: the digest of the file when it was captured.
        count: number of captured launches.
        grids: distinct ones, the most frequent first.
        launched_from: call sites: `script.py:33`.
        module: the import name of the file.
        configs: the configs of its autotuner after pruning: values of parameters and options of the backend
            together. `signature` and `options` have those of the first.
        largest: the largest integer that each parameter had in the captured launches.
        launch: the grid of one launch, and its arguments: numbers, and for a tensor a table with its
            `elements`, and `low` and `high`, or all `values`, where they matter.
    """

    where: str
    file: str
    kernel: str
    name: str
    signature: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: SpecifierSet = field(default_factory=SpecifierSet)
    sha256: str = ""
    count: int = 0
    grids: tuple[tuple[int, ...], ...] = ()
    launched_from: tuple[str, ...] = ()
    module: str = ""
    configs: tuple[Mapping[str, Any], ...] = ()
    largest: Mapping[str, int] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, version: str) -> bool:
        """Report whether the kernel is for this Triton; an unknown version (empty) fits every kernel."""
        # Nightlies (`3.6.0.dev20251012`) are prereleases, which a specifier would leave out by default.
        return not version or self.versions.contains(version, prereleases=True)

    def changed(self, folder: Path) -> bool:
        """Report whether the file's content differs from that when the kernel was captured.

        Raises:
            FactError: it cannot be read.
        """
        # Hand-written entries have no digest, and a file of a repository may not be here.
        file = folder / self.file
        if not self.sha256 or not untrusted.is_file(file):
            return False
        return source_tree.sum_of(file) != self.sha256

    def request(
        self,
        folder: Path,
        default_targets: tuple[Target, ...],
        text: str | None = None,
        *,
        autotune: bool = False,
    ) -> CompileRequest:
        """Return the compile request of this entry.

        Args:
            folder: the folder that `file` is relative to.
            default_targets: targets of the flags.
            text: content of the file, if it does not exist yet.
            autotune: compile the configs; they override the entry's own values.

        Raises:
            SmithError: the file cannot be read, or a parameter has no argument.
        """
        file = (folder / self.file).absolute()
        if text is None:
            file = source_tree.as_python(file)
            text = source.read(file)
        name = source.choose(text, self.kernel, file)
        # The configs override what the entry itself sets, which is the first config's.
        tuned = {key for table in self.configs for key in table} if autotune else set()
        entries = self.signature
        if not entries:
            entries = self._signature(source.find(text, name, file), file, tuned)
        elif tuned:
            entries = signature.without(entries, tuned, source.find(text, name, file))
        options = {key: value for key, value in self.options.items() if key not in tuned}
        configs = self.configs if autotune else ()
        return CompileRequest(
            file, name, entries, self.targets or default_targets, options, autotune=autotune, configs=configs
        )

    def _signature(self, kernel: KernelSource | None, file: Path, tuned: Container[str]) -> str:
        if kernel is None:
            raise ConfigError(
                f"the parameters of {self.kernel} cannot be read without running the file",
                where=f"{self.where}: {file}",
                hints=["give a signature instead of arguments"],
            )
        parts = []
        for parameter in kernel.parameters:
            if parameter.name in tuned:
                continue
            text = next(
                (entry for key, entry in self.arguments.items() if fnmatchcase(parameter.name, key)), None
            )
            if text is not None:
                parts.append(f"{parameter.name}={text}")
            elif not parameter.has_default and parameter.name not in kernel.heuristics:
                raise ConfigError(
                    f"no type or value for {parameter.name} of {kernel.name}",
                    where=f"{self.where}: {file}",
                    hints=[f'arguments = {{ {parameter.name} = "i32" }}'],
                )
        return ",".join(parts)


def read(path: Path) -> tuple[ListedKernel, ...]:
    """Read the kernels of a file, in its order.

    Raises:
        ConfigError: it is not valid TOML, or an entry is wrong: the error names the entry and the key.
        UsageError: there is no such file.
    """
    try:
        table = untrusted.read_toml(path, configs.load("kernels")["file"]["limit"])
    except FileNotFoundError:
        near = [file.name for file in path.parent.glob(f"*{SUFFIX}")]
        hints = did_you_mean(path.name, near) if near else ["docs/kernels.md describes the format"]
        raise UsageError("no such file", where=path, hints=hints) from None
    except OSError as error:
        # `untrusted` refuses a file above the limit with this number.
        hints = ["split it into several files"] if error.errno == errno.EFBIG else []
        raise ConfigError("cannot read this file", where=path, why=error.strerror, hints=hints) from error
    except ValueError as error:
        raise ConfigError("this file is not valid TOML", where=path, why=str(error)) from error
    return of_table(table, path)


def of_table(table: Mapping[str, Any], path: Path) -> tuple[ListedKernel, ...]:
    """Return the kernels of a file's content.

    Args:
        table: the content.
        path: the file, for messages.

    Raises:
        ConfigError: an entry is wrong.
    """
    _check(table, _TOP, str(path))
    common = table.get("arguments", {})
    entries = [_entry(row, number, common, path) for number, row in enumerate(table.get("kernel", []), 1)]
    if not entries:
        raise ConfigError(
            "this file lists no kernels", where=path, hints=["list each kernel as a table: [[kernel]]"]
        )
    # One kernel may have an entry for each range of Tritons: its options differ from release to release.
    names = Counter((entry.name, str(entry.versions)) for entry in entries)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ConfigError(
            f"{twice[0][0]} is listed twice", where=path, hints=['give one of them a name: name = "..."']
        )
    return tuple(entries)


def _entry(row: Any, number: int, common: dict[str, Any], path: Path) -> ListedKernel:
    where = f"{path}, [[kernel]] {number}"
    if not isinstance(row, dict):
        raise ConfigError("an entry of `kernel` must be a table", where=where, hints=["write [[kernel]]"])
    _check(row, _KEYS, where)
    file, kernel, own = row.get("file", ""), row.get("kernel", ""), row.get("arguments", {})
    if not file:
        raise ConfigError("file is missing", where=where, hints=['file = "matmul.py"'])
    if not untrusted.fits(Path(file)):
        raise ConfigError("file is not a path", where=where, why=repr(file[:200]))
    if "signature" in row and "arguments" in row:
        raise ConfigError(
            "signature and arguments are mutually exclusive", where=where, hints=["omit one of them"]
        )
    if "signature" not in row and "arguments" not in row and not common:
        raise ConfigError(
            "either signature or arguments is required",
            where=where,
            hints=['signature = "*fp32:16,i32,BLOCK=1024"'],
        )
    return ListedKernel(
        where=where,
        file=file,
        kernel=kernel,
        # The name is the key of tables and folders, so there is one even for the only kernel of a file.
        name=row.get("name") or kernel or Path(file).stem,
        signature=row.get("signature", ""),
        # The first match counts, so an entry's own patterns come first; the last `own` makes its values win.
        arguments=dict(_texts(own | common | own, where)),
        targets=_targets(row.get("targets", []), where),
        options=_options(row.get("options", {}), "options", where),
        versions=_versions(row.get("versions", ""), where),
        sha256=row.get("sha256", ""),
        count=row.get("count", 0),
        grids=tuple(_grid(sizes, where) for sizes in _all(list, "grid", row, where)),
        launched_from=_all(str, "where", row, where),
        module=row.get("module", ""),
        configs=tuple(_options(config, "configs", where) for config in _all(dict, "configs", row, where)),
        largest=_numbers(row.get("largest", {}), where),
        launch=_launch(row.get("launch", {}), where),
    )


def _options(table: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return a table whose values a command line can carry: no dates, and no tables except dtypes."""
    for name, value in table.items():
        if not signature.is_value(value):
            hints = ["write numbers, texts, true, false, and lists of them"]
            raise ConfigError(f"{key}: {name} cannot be {str(value)[:80]}", where=where, hints=hints)
    return table


def _grid(sizes: list[Any], where: str) -> tuple[int, ...]:
    # Not `isinstance`: True is an int, too.
    for size in sizes:
        if type(size) is not int:
            raise ConfigError(f"grid must list numbers, not {size!r}", where=where)
    return tuple(sizes)


def _numbers(table: dict[str, Any], where: str) -> dict[str, int]:
    for name, value in table.items():
        if type(value) is not int:
            raise ConfigError(f"largest: {name} must be a number, not {value!r}", where=where)
    return table


_LAUNCH: Mapping[str, type] = {"grid": list, "arguments": dict}
_TENSOR: Mapping[str, type] = {"elements": int, "low": float, "high": float, "values": list}


def _launch(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of a launch, with numbers and tables of tensors alone."""
    _check(table, _LAUNCH, f"{where}, launch")
    _grid(table.get("grid", []), where)
    for name, value in table.get("arguments", {}).items():
        if isinstance(value, dict):
            wide = {
                key: float(part) if type(part) is int and key in ("low", "high") else part
                for key, part in value.items()
            }
            _check(wide, _TENSOR, f"{where}, launch: {name}")
        elif type(value) not in (int, float, bool):
            hints = [f"launch = {{ grid = [64], arguments = {{ {name} = {{ elements = 65536 }} }} }}"]
            raise ConfigError(f"launch: {name} cannot be {str(value)[:80]}", where=where, hints=hints)
    return table


def _all(kind: type, key: str, row: Mapping[str, Any], where: str) -> tuple[Any, ...]:
    """Return the parts of a list, each checked to be of one type."""
    for part in row.get(key, ()):
        if type(part) is not kind:
            raise ConfigError(f"{key} must list {_PLURALS[kind]}, not {part!r}", where=where)
    return tuple(row.get(key, ()))


def _texts(table: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if not isinstance(value, str):
            raise ConfigError(
                f"arguments: {key} must be a text, not {value!r}", where=where, hints=[f'{key} = "{value}"']
            )
        yield key, value


def _targets(words: list[Any], where: str) -> tuple[Target, ...]:
    try:
        return targets.parse_all(map(str, words))
    except UsageError as error:
        raise ConfigError(f"targets: {error.what}", where=where, hints=error.hints) from None


def _versions(text: str, where: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        hints = ['versions = ">=3.4"', 'versions = ">=3.2,<3.6"']
        raise ConfigError(f"versions cannot be {text!r}", where=where, why=str(error), hints=hints) from None


def _check(table: Mapping[str, Any], known: Mapping[str, type], where: str) -> None:
    # Not `isinstance`, for which `count = true` would be a number.
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown key {key!r}", where=where, hints=did_you_mean(key, known))
        if type(value) is not known[key]:
            raise ConfigError(f"{key} must be {_KINDS[known[key]]}, not {value!r}", where=where)


def row(kernel: ListedKernel) -> dict[str, Any]:
    """Return keys and values of a kernel that was read from a list."""
    keys = {
        "name": kernel.name,
        "file": kernel.file,
        "kernel": kernel.kernel,
        "module": kernel.module,
        "signature": kernel.signature,
        # A file refuses an entry that has both; its common arguments are in every kernel that was read.
        "arguments": None if kernel.signature else kernel.arguments,
        "targets": [target.spelling() for target in kernel.targets],
        "options": kernel.options,
        "versions": str(kernel.versions),
        "configs": kernel.configs,
        "count": kernel.count,
        "grid": [list(grid) for grid in kernel.grids],
        "largest": dict(kernel.largest),
        "launch": dict(kernel.launch),
        "where": list(kernel.launched_from),
        "sha256": kernel.sha256,
    }
    required = ("signature",) if not kernel.arguments else ()
    return {key: value for key, value in keys.items() if value or key in required}


def render_kernels(
    rows: Iterable[Mapping[str, Any]], head: str = "", captured: Mapping[str, Any] | None = None
) -> str:
    """Return the text of a file that lists kernels.

    Args:
        rows: keys and values of each kernel, in the order of the file.
        head: a comment for the reader.
        captured: origin of the list, if it was captured from a program.
    """
    import tomlkit  # noqa: PLC0415 - to read a list does not need it

    document = tomlkit.document()
    for line in head.splitlines():
        document.add(tomlkit.comment(line))
    document.add("schema", tomlkit.item(1))
    if captured is not None:
        document.add("captured", _table(captured))
    kernels = tomlkit.aot()
    for row in rows:
        kernels.append(_table(row))
    document.add("kernel", kernels)
    return tomlkit.dumps(document)


def _table(content: Mapping[str, Any]) -> Table:
    import tomlkit  # noqa: PLC0415

    # tomlkit alone decides about quotes and line ends: names of kernels and paths may have any character.
    table = tomlkit.table()
    for key, value in content.items():
        table.add(key, tomlkit.item(_inline(value, lines=key in _SPLIT_KEYS)))
    table.add(tomlkit.nl())
    return table


def _inline(value: Any, *, lines: bool = False) -> Any:
    """Spell tables and lists in one line; with `lines`, a list gets one line per part."""
    import tomlkit  # noqa: PLC0415

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(part) for key, part in value.items()})
        return table
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        array.extend(_inline(part) for part in value)
        return array.multiline(multiline=lines and bool(value))
    return value
