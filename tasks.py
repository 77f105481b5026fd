"""What Invoke reads: the namespace, nothing else."""

from tritonsmith.tasks import namespace

__all__ = ["namespace"]
