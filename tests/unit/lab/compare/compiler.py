"""An interpreter that answers the worker's requests without a Triton; it dies when it is told to."""

from __future__ import annotations

from pathlib import Path

from tests.support import script_of_python

_PROGRAM = """\
import ctypes, hashlib, json, os, signal, sys, time
def answer(path):
    request = json.load(open(path))
    data = open(request["file"], "rb").read()
    text = data.decode()
    with open({log!r}, "a") as log:
        for point in request["points"]:
            log.write(request["kernel"] + " " + point["id"] + "\\n")
    if "die always" in text or ("die once" in text and not os.path.exists({log!r} + ".died")):
        open({log!r} + ".died", "w").close()
        time.sleep(3)  # what a worker of a cluster compiled before may still be on its way
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.2)
    if "leave" in text and sys.argv[2] == "attend":
        os._exit(7)
    if "hang" in text:
        time.sleep(600)
    # By one version, the first compile crashes and the next does not.
    flaky, again = "flaky " + {version!r} in text, os.path.exists({log!r} + ".flaky")
    # By one version, the first compile succeeds and the next crashes.
    breaks = "breaks " + {version!r} in text
    if flaky or breaks:
        open({log!r} + ".flaky", "w").close()
    reads = {{}}
    if "reads " in text:  # a file, as loading the kernel's file would
        name = text.split("reads ")[1].split()[0]
        path = os.path.normpath(os.path.join(os.path.dirname(request["file"]), name))
        content = open(path, "rb").read()
        reads[path] = "" if content == b"edited meanwhile" else hashlib.sha256(content).hexdigest()
    refused = {{"kind": "file", "what": "it is refused", "reads": reads}} if "refuse" in text else None
    head = {{"triton": {version!r}, "origin": "/fake", "python": "3.11", "missing": [],
             "notes": [], "variables": {{}}, "file_sha256": hashlib.sha256(data).hexdigest(),
             "reads": reads}}
    rows = [{{"refused": refused}}] if refused else [head]
    for point in [] if refused else request["points"]:
        folder = os.path.join(request["output"], point["id"])
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(point["id"], "k.ptx")
        content = request["file"] if "tell" in text else "// ptx"
        open(os.path.join(request["output"], path), "w").write(content)
        stage = {{"path": path, "size": len(content), "sha256": hashlib.sha256(content.encode()).hexdigest()}}
        stages = {{"ptx": stage}}
        if "binary " in text:  # from the file of this version in a folder
            places = text.split("binary ")[1].split()[0]
            names = {{"cubin": {version!r} + ".cubin"}}
            if request["disassemble"]:
                names["sass"] = "sass"
            for name, place in names.items():
                content = open(os.path.join(places, place), "rb").read()
                path = os.path.join(point["id"], "k." + name)
                open(os.path.join(request["output"], path), "wb").write(content)
                sha256 = hashlib.sha256(content).hexdigest()
                stages[name] = {{"path": path, "size": len(content), "sha256": sha256}}
        status = "crashed" if "crash" in text or (flaky and not again) or (breaks and again) else "ok"
        target = ":".join(map(str, point["target"]))
        rows.append({{"id": point["id"], "target": target, "status": status, "seconds": 0.1,
                      "signature": point["signature"], "constexprs": point["constexprs"],
                      "hints": point["hints"], "options": point["options"],
                      "stages": stages, "metadata": {{}}, "log": "",
                      "error": request["file"] + ":3: no" if "crash" in text else ""}})
    open(request["results"], "w").write("".join(json.dumps(row) + "\\n" for row in rows))
    return 2 if refused else 0
with open({log!r} + ".starts", "a") as log:
    log.write(sys.argv[2] + "\\n")
if sys.argv[2] == "attend":  # one request after the other
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # as the worker
    for line in sys.stdin:
        code = answer(line.rstrip("\\n").partition(" ")[2])
        print(json.dumps({{"status": "ok", "value": code, "error": None}}), flush=True)
else:
    sys.exit(answer(sys.argv[3]))
"""


def make(folder: Path, version: str = "3.4.0") -> Path:
    """The interpreter, with a package `triton` of that version beside it."""
    python = folder / "bin" / "python"
    package = folder / "lib" / "python3.11" / "site-packages" / "triton"
    for path in (python.parent, package):
        path.mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    return script_of_python(python, _PROGRAM.format(log=str(folder / "log"), version=version))


def compiled(python: Path) -> list[str]:
    """What it was asked for so far: `kernel point`."""
    log = python.parents[1] / "log"
    return log.read_text().splitlines() if log.is_file() else []


def starts(python: Path) -> list[str]:
    """The commands that it was started with so far."""
    log = python.parents[1] / "log.starts"
    return log.read_text().splitlines() if log.is_file() else []


def kernel(folder: Path, name: str = "k", remark: str = "") -> Path:
    """A file with a kernel; the remark says how the interpreter takes it."""
    path = folder / f"{name}.py"
    path.write_text(f"# {remark}\n@triton.jit\ndef {name}(p, N: tl.constexpr):\n    pass\n")
    return path
