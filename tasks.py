"""What Invoke reads: the namespace, nothing else."""

from tritonsmith.tasks import kit, namespace

kit.end_with_reader()

__all__ = ["namespace"]
