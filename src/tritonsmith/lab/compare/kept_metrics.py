"""Metrics of an output folder, kept beside its manifest: reading the binaries again takes longer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.resources import measure
from tritonsmith.core import configs, untrusted
from tritonsmith.core.plan import digest, files
from tritonsmith.lab.compare import metrics
from tritonsmith.lab.compare.metrics import Measured

FILE = "metrics.json"
_SCHEMA = 1  # a change of what is measured, and how, changes it
_TABLES = ("gpu-limits", "kernel-metrics", "kernel-resources")


@dataclass(frozen=True)
class FolderMetrics:
    """Metrics of all points of an output folder.

    Attributes:
        points: by the point's id; empty for one that did not compile.
        notes: what a person should know.
    """

    points: Mapping[str, Measured]
    notes: tuple[str, ...]


def of(manifest: Manifest) -> FolderMetrics:
    """The metrics, measured now if they are not kept, or of another compile.

    Raises:
        FactError: a file of a compile cannot be read.
    """
    path = manifest.folder / FILE
    key = digest(_SCHEMA, manifest.render(), [configs.load(name) for name in _TABLES])
    try:
        content = untrusted.read_json(path, untrusted.OURS)
        if content["key"] == key:
            return FolderMetrics(content["points"], tuple(content["notes"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none yet, or not ours
    made = _measured(manifest)
    text = json.dumps({"key": key, "points": made.points, "notes": made.notes}, indent=1)
    files.write_atomically(path, f"{text}\n")
    return made


def _measured(manifest: Manifest) -> FolderMetrics:
    found = measure.of_manifest(manifest)
    points = {
        point.id: metrics.measure(manifest, point, row) if point.status == "ok" else {}
        for point, row in zip(manifest.points, found.rows, strict=True)
    }
    said = (*manifest.warnings, *found.warnings, *found.notes, *measure.without_text(manifest))
    return FolderMetrics(points, tuple(dict.fromkeys(said)))
