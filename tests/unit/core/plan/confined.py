"""Extracts archives in a process with little memory, whose files cannot grow.

`python -m tests.unit.core.plan.confined FOLDER ARCHIVE...` prints what was said of each, as a line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import zstandard  # noqa: F401 - before there is little memory

from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import archive

MEMORY = 200 << 20  # bytes of addresses; Python and its libraries take some 60 MiB
LARGEST = 48 << 20  # bytes of a file
RATIO_FROM = 32 << 20  # bytes, where the real limit takes longer to reach


def main() -> None:
    configs.load("archives")["limits"]["ratio-from"] = RATIO_FROM
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    dest, *archives = map(Path, sys.argv[1:])
    for path in archives:
        try:
            archive.extract(path, dest, progress=lambda _done, _total: None)
            said = "extracted"
        except SmithError as error:
            said = str(error)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
