"""Hide secrets, and characters that a terminal would act on, in every log, screen, lock and receipt.

A report for others is also without names of users and hosts, and private folders: see `redactor`.

A secret is recognized by its context (the login of a URL, a query such as `?token=`, a header), by the
name of its variable, key or option, or by its form (`ghp_...`, a JWT, a private key). A hash is not a secret.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "***"

# Names of variables, keys and options. In a running text `key` and `auth` count in capitals only. A name ends
# with `token` where it holds one: `sorted_token_ids_ptr` is a parameter of many kernels.
_STRONG = (
    r"token(?=[.-]|(?:_?v?\d+|_value)?$)|secret(?!ar)|passw(?:or)?d|passphrase|credential|cookie"
    r"|api_?key|access_?key|private_?key"
)
_SHORT = "pass|pat|pwd|creds?|bearer|session|signature"  # at the end of a variable's name: X_PASS
_NAME = re.compile(
    rf"{_STRONG}|(?:^|[_.-])(?:key|auth|authorization)(?:$|[_.-])|_(?-i:{_SHORT.upper()})$",
    re.IGNORECASE,
)
_STRONG_NAME = re.compile(_STRONG, re.IGNORECASE)
_TYPE = r"\*{0,2}k?(?:[iu](?:1|8|16|32|64)|fp(?:16|32|64|8e[45]\w{0,5})|bf16)(?::\d+)?|constexpr"  # Triton's
_HARMLESS = re.compile(
    rf"(?:[-+]?\d{{1,9}}(?:\.\d+)?|true|false|on|off|yes|no|none|null|\*\*\*|{_TYPE})?", re.IGNORECASE
)
_VALUE = r"""(?:(?:'[^']*'|"[^"]*")+|(?:[^\s'",\\]|\\.)+)"""  # JSON around it stays JSON

_LOGIN = re.compile(r"://[^/\s'\"<>]+@")  # up to the last @ before the path: a password may hold one
_QUERY = re.compile(
    r"([?&;](?:x-(?:amz|goog|ms)-[\w-]+|aws_?access_?key_?id|key-pair-id|policy|auth|sig|key|[\w-]+_key"
    r"|[\w.-]*(?:token|secret|password|passwd|credential|signature)[\w.-]*)=)[^&\s'\"<>#;|)\],\\]+",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(rf"(?<![\w?&])([A-Za-z_]\w*)((?::[A-Z]+)?=)({_VALUE})")  # CMake's -DNAME:TYPE=, too
_SET = re.compile(r"""(\bset\(\s*([A-Za-z_]\w*)\s+)("(?:[^"\\]|\\.)*"|[^\s)]+)""", re.IGNORECASE)  # CMake's
# JSON, and what Python prints of a table.
_KEYED = re.compile(r"""(["'])([A-Za-z_][\w.-]*)\1(\s*:\s*)(["'])((?:(?!\4)[^\\\n]|\\.)*)\4""")
_OPTION = re.compile(
    r"(?<![\w-])(--(?:\w+-){0,3}(?:token|password|passwd|secret|api-?key|access-?key|credentials?))([= ]+)"
    rf"(?!-){_VALUE}"
)
_HEADER = re.compile(
    r"(?<![\w-])((?:proxy-)?authorization|(?:set-)?cookie|(?:[a-z]+-){1,3}token|x-api-key)(\s*:\s*)"
    r"(?:[^\n'\"\\]|\\.)+",
    re.IGNORECASE,
)
_SHAPE = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|sk-(?=[\w-]*\d)(?=[\w-]*[A-Za-z0-9]{16})[\w-]{20,}|xox[a-z]-[\w-]{10,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{40,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"
    r")"
)
_BEGIN, _END = "-----BEGIN ", "-----END "
_PRIVATE = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)

# What is hidden has one of these in it, in any case; most lines of a build have none, and are done with here.
_SIGNS = (
    *("@", "token", "secret", "passw", "passphrase", "credential", "cookie", "auth", "key"),
    *("sig=", "signature=", "policy=", "x-amz-", "x-goog-", "x-ms-"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "glpat-", "hf_", "akia", "asia", "sk-", "xox"),
    *("npm_", "pypi-", "aiza", "ya29", "eyj"),
)
_SHORT_SIGN = re.compile(rf"_(?:{_SHORT})[=:'\" ]")


def hidden(text: str) -> str:
    """Return the text, with `***` for each secret in it."""
    # Most lines of a build have none of these signs, and are done with here: ten regular expressions for
    # each of a million lines would be noticed.
    lower = text.lower()
    if not any(sign in lower for sign in _SIGNS) and not _SHORT_SIGN.search(lower):
        return text
    text = _PRIVATE.sub(rf"\1 {MARK} \2", text) if _BEGIN in text else text
    # The order matters: a login is hidden before the names of variables are looked at,
    # whose values may hold a URL.
    text = _LOGIN.sub(f"://{MARK}@", text)
    text = _QUERY.sub(rf"\1{MARK}", text)
    text = _HEADER.sub(rf"\1\2{MARK}", text)
    text = _OPTION.sub(rf"\1\2{MARK}", text)
    text = _ASSIGNED.sub(_assigned, text)
    text = _SET.sub(_set, text)
    text = _KEYED.sub(_keyed, text)
    return _SHAPE.sub(MARK, text)


def variable(name: str, value: str) -> str:
    """Return the value of a variable or a key, or `***` if its name indicates a secret."""
    return MARK if is_secret(name) and not _HARMLESS.fullmatch(value) else hidden(value)


def is_secret(name: str) -> bool:
    """Return whether the name of a variable or a key indicates a secret."""
    return _NAME.search(name) is not None


def data(value: Any) -> Any:
    """Hide secrets in data for JSON: tables, lists and texts; other values are unchanged."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, Mapping):
        return {name: _value(str(name), item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [data(item) for item in value]
    return value


class SecretLines:
    """Hides secrets in a stream that comes line by line: a private key has many lines."""

    def __init__(self) -> None:
        self._inside = False

    def __call__(self, line: str) -> str:
        """Return the line, without its secrets."""
        if self._inside:
            self._inside = _END not in line
            return MARK
        if _BEGIN in line and "PRIVATE KEY" in line:
            self._inside = _END not in line
        return hidden(line)


def _value(name: str, value: Any) -> Any:
    return MARK if isinstance(value, str) and _hides(name, value) else data(value)


def _hides(name: str, value: str) -> bool:
    """Return whether a name in a text or table hides its value: `key` may be any key, `KEY` is a variable."""
    named = _STRONG_NAME.search(name) or (name.isupper() and is_secret(name))
    return bool(named) and not _HARMLESS.fullmatch(value)


def _assigned(match: re.Match[str]) -> str:
    name, equals, value = match.groups()
    hide = _hides(name, value.strip("'\""))
    return f"{name}{equals}{MARK}" if hide else match[0]


def _set(match: re.Match[str]) -> str:
    return f"{match[1]}{MARK}" if _hides(match[2], match[3].strip('"')) else match[0]


def _keyed(match: re.Match[str]) -> str:
    quote, name, between, other, value = match.groups()
    return f"{quote}{name}{quote}{between}{other}{MARK}{other}" if _hides(name, value) else match[0]


# Control characters but for line ends and tabs, and what turns the direction of writing around. A surrogate
# is a byte of a file's name that is no UTF-8.
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BYTES = range(0xDC80, 0xDD00)  # surrogates that stand for bytes: PEP 383
_LATIN = 0x100


def printable(text: str) -> str:
    r"""Return the text with `\x1b` for an escape character, and the like."""
    # A name in an archive may hold sequences that clear the screen, retitle the window or type an answer.
    return _HARMFUL.sub(_shown, text)


def _shown(harmful: re.Match[str]) -> str:
    code = ord(harmful[0])
    if code in _BYTES:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < _LATIN else f"\\u{code:04x}"


_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/nix/store", "/opt", "/proc", "/sbin", "/sys", "/usr")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - as /tmp: anybody's folders
# The start of a path: not inside another one, nor in a URL, but after -I and file://.
_START = r"(?:(?<![\w~$./<>*…-])|(?<=-[FIL])|(?<=file://))/(?!/)"
_PATH = re.compile(_START + r"[^\s'\"`,;:|()<>]+")
# A quoted path is one path, whatever it contains: shlex.quote quotes paths with a space.
_QUOTED = re.compile(r"(?<=(['\"`]))/[^'\"`\n]+(?=\1)")
_BETWEEN = re.compile(r"(:|;|, )(?=/(?!/))")  # separators of the paths of a list
_HOMES = (Path("/home"), Path("/Users"))
_SOMEONES = re.compile(r"((?<![\w.])/(?:home|Users)/)[^/\s:;,'\"]+")
_FEW = 3  # letters; shorter names occur in other words


@dataclass(frozen=True)
class Redactor:
    """Replacement of personal data by placeholders.

    Attributes:
        folders: each folder with its placeholder, the longest first.
        names: words that must not appear, with their placeholders.
    """

    folders: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def __call__(self, text: str) -> str:
        """Redact a text."""
        # Secrets first, then whole paths: what is left of them could otherwise look harmless.
        text = _QUOTED.sub(lambda match: self.path(match[0]), hidden(text))
        for folder, label in self.folders:
            text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
        return self._unnamed(_PATH.sub(lambda match: _last_part(match[0]), text))

    def in_place(self, text: str) -> str:
        """Redact only secrets, names and homes: comparisons need the whole path of `/opt/cuda-12/lib64`."""
        text = hidden(text)
        for folder, label in self.folders:
            text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
        return self._unnamed(_SOMEONES.sub(r"\1<user>", text))

    def path(self, text: str) -> str:
        """Redact a text that is one path, or a list of paths: a space does not end a path."""
        return "".join(self._whole(part) for part in _BETWEEN.split(hidden(text)))

    def _whole(self, path: str) -> str:
        scheme = "file://" if path.startswith("file://") else ""
        path = path.removeprefix(scheme)
        known = next((item for item in self.folders if Path(path).is_relative_to(item[0])), None)
        if known:
            folder, label = known
            path = f"{label}{path.removeprefix(folder)}"
        elif path.startswith("/"):
            path = _last_part(path)
        else:
            return scheme + self(path)
        return scheme + self._unnamed(path)

    def _unnamed(self, text: str) -> str:
        for name, label in self.names:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", label, text)
        return text


def redactor(folders: Mapping[Path, str]) -> Redactor:
    """Return the redactor for this machine and user, with more folders (the workspace) and placeholders."""
    home, node = _home(), platform.node()
    places = {home: "~", **folders}
    # Messages name a folder as it was given or with links followed, and macOS's /tmp is a link.
    known = {str(form): label for folder, label in places.items() for form in (folder, folder.resolve())}
    # The longest first: the workspace is mostly below the home folder.
    listed = sorted(known.items(), key=lambda item: -len(item[0]))
    names = {_user(): "<user>", node: "<host>", node.partition(".")[0]: "<host>"}
    names |= {home.name: "<user>"} if home.parent in _HOMES else {}
    # A short name occurs in other words, and a common one identifies nobody.
    shown = [(name, label) for name, label in names.items() if len(name) >= _FEW and name not in _COMMON]
    return Redactor(tuple(item for item in listed if item[0] != "/"), tuple(shown))


# These names identify nobody, and mean something else in a report.
_COMMON = frozenset({"root", "user", "dev", "ubuntu", "runner", "triton", "localhost"})


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container's user without a name, and no HOME
        return Path("/")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return os.environ.get("USER", "")


def _last_part(whole: str) -> str:
    path = whole.rstrip("/")
    if Path(path).parent in _HOMES:
        return "…/<user>"
    system = any(path == root or path.startswith(f"{root}/") for root in _SYSTEM)
    # System paths say something and identify nobody; what users choose may name them or their employer.
    if system and not path.startswith(_SHARED_MEMORY):
        return whole
    return f"…/{path.rpartition('/')[2]}"
