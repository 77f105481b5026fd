"""A real Chromium without a window, driven by its own DevTools protocol over a pipe.

A pipe needs no port, no server and no package: a message is JSON that ends with a NUL byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE = 30.0  # seconds until something that does not come is a failure
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # containers; the page is ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
_CODES = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27}


def found() -> str:
    """Path of a Chromium; the name of Debian's package where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), NAMES[0])


@dataclass
class Page:
    """A tab.

    Attributes:
        errors: exceptions and what the page wrote to its console as an error.
        requests: addresses that it asked for.
    """

    _out: int
    _in: int
    session: str = ""
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _last: int = 0
    _rest: bytes = b""

    def call(self, method: str, **parameters: Any) -> Any:
        """Ask Chromium, and wait for the answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file, and wait until a pass of it is shown."""
        self.call("Page.navigate", url="about:blank")  # or another fragment would load nothing
        self.requests.clear()
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait("document.body?.dataset.shown !== undefined")

    def read(self, path: Path) -> str:
        """Open a file without a script, which asks for nothing and has no errors; its text."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && document.body.innerText.length > 100")
        assert self.errors == []
        assert [url for url in self.requests if url not in (path.as_uri(), "about:blank")] == []
        assert (
            self.js("getComputedStyle(document.querySelector('h1')).fontSize") == "20px"
        )  # its style counts
        return str(self.js("document.body.innerText"))

    def js(self, code: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        made = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def wait(self, code: str) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.js(code):
            assert time.monotonic() < deadline, f"it never came: {code}; {self.errors}"
            time.sleep(0.02)

    def key(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        code = _CODES.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        """Of the window, in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """What the system says of `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        """Write what is on the screen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], _PATIENCE)
            assert ready, "Chromium does not answer"
            got = os.read(self._in, 2**20)
            assert got, "Chromium ended"
            self._rest += got
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning"):
                self.errors.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(str(parameters["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
        return message


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """A tab of a fresh Chromium.

    Args:
        profile: folder for what the browser keeps.
    """
    to_browser, out = os.pipe()
    into, from_browser = os.pipe()
    # Chromium expects them as 3 and 4. They go up first: either may be 3 or 4 itself.
    moved = "os.dup2(int(a), 98); os.dup2(int(b), 99); os.dup2(98, 3); os.dup2(99, 4)"
    start = f"import os, sys; a, b, *argv = sys.argv[1:]; {moved}; os.execvp(argv[0], argv)"
    chromium = (found(), *_FLAGS, f"--user-data-dir={profile}", "about:blank")
    argv = (sys.executable, "-c", start, str(to_browser), str(from_browser), *chromium)
    process = subprocess.Popen(
        argv, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        made = Page(out, into)
        targets = made.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        made.session = made.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            made.call(f"{domain}.enable")
        yield made
        made.session = ""
        made.call("Browser.close")
        process.wait(_PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(out)
        os.close(into)
