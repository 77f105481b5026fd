"""Our C sources beside those of upstream's tools/compile.py and tools/link.py."""
