"""Readers of the texts and binaries that compilers write: MLIR, PTX, ELF, disassemblies. They run nothing."""
