"""What Invoke reads: the namespace, nothing else."""

from tritonsmith.start import interruptible

with interruptible():
    from tritonsmith.tasks import namespace, task

task.end_with_reader()

__all__ = ["namespace"]
