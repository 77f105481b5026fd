"""Steps, plans, and the one runner that acts on them."""

from tritonsmith.plan.steps import (
    Copy,
    Download,
    Extract,
    GitFetch,
    Link,
    MakeDir,
    Move,
    Plan,
    Remove,
    Run,
    Stamp,
    Step,
    Write,
)
from tritonsmith.plan.steps.ninja import BuildUsed

__all__ = [
    "BuildUsed",
    "Copy",
    "Download",
    "Extract",
    "GitFetch",
    "Link",
    "MakeDir",
    "Move",
    "Plan",
    "Remove",
    "Run",
    "Stamp",
    "Step",
    "Write",
]
