#!/bin/sh
# virtual environment of wheel
set -eu

# Python environment
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/wheel/.venv.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel'
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel' && /opt/homebrew/bin/python3.11 -m venv --clear '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv')
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/.requirements.done is up to date:
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel' && '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/bin/python' -m pip install --quiet --disable-pip-version-check triton)

# compile vector-add
# always:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels'
cat > '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add.request.json' <<'EOF'
{
  "file": "/Users/dev/tritonsmith/src/tritonsmith/compiler/examples/vector_add.py",
  "kernel": "vector_add",
  "ir": false,
  "points": [
    {
      "target": [
        "cuda",
        90,
        32
      ],
      "id": "cuda-90-32",
      "options": {},
      "signature": {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "out_ptr": "*fp32",
        "n_elements": "i32",
        "BLOCK": "constexpr"
      },
      "constexprs": {
        "BLOCK": 1024
      },
      "hints": {
        "x_ptr": 16,
        "y_ptr": 16,
        "out_ptr": 16
      },
      "ranges": [],
      "surgery": null
    },
    {
      "target": [
        "hip",
        "gfx942",
        64
      ],
      "id": "hip-gfx942-64",
      "options": {},
      "signature": {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "out_ptr": "*fp32",
        "n_elements": "i32",
        "BLOCK": "constexpr"
      },
      "constexprs": {
        "BLOCK": 1024
      },
      "hints": {
        "x_ptr": 16,
        "y_ptr": 16,
        "out_ptr": 16
      },
      "ranges": [],
      "surgery": null
    }
  ],
  "stand_ins": [
    "torch",
    "numpy",
    "pytest",
    "matplotlib",
    "pandas",
    "scipy",
    "tabulate",
    "tqdm",
    "setuptools",
    "triton_kernels",
    "apex",
    "flash_attn",
    "transformer_engine",
    "cupy",
    "jax",
    "hypothesis"
  ],
  "gpus": {},
  "disassemblers": {},
  "lent": {},
  "output": "/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add",
  "scratch": "/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels",
  "results": "/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/results.jsonl",
  "jobs": 2,
  "timeout": 600,
  "strict": true,
  "keep": [],
  "disassemble": true,
  "stages": [
    "ttir",
    "glir",
    "ttgir",
    "llir",
    "ptx",
    "cubin",
    "amdgcn",
    "hsaco"
  ],
  "last": "",
  "shared": "",
  "sent": []
}
EOF
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels' && env -u TRITON_INTERPRET -u TRITON_STORE_BINARY_ONLY -u TRITON_CACHE_MANAGER TRITON_HIP_LLD_PATH=/opt/homebrew/opt/llvm/bin/ld.lld '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/bin/python' /Users/dev/tritonsmith/src/tritonsmith/worker compile '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add.request.json')
