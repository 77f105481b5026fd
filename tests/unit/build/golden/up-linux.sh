#!/bin/sh
# virtual environment of wheel
set -eu

# Python environment
# skipped if /home/dev/.local/share/tritonsmith/envs/wheel/.venv.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /usr/bin/python3.11 -m venv --clear /home/dev/.local/share/tritonsmith/envs/wheel/venv)
# skipped if /home/dev/.local/share/tritonsmith/envs/wheel/venv/.requirements.done is up to date:
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check triton)

# compile vector-add
# always:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels
cat > /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json <<'EOF'
{
  "file": "/home/dev/tritonsmith/src/tritonsmith/compiler/examples/vector_add.py",
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
  "output": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add",
  "scratch": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels",
  "results": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels/results.jsonl",
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
(cd /home/dev/.local/share/tritonsmith/envs/wheel/kernels && env -u TRITON_INTERPRET -u TRITON_STORE_BINARY_ONLY -u TRITON_CACHE_MANAGER TRITON_HIP_LLD_PATH=/usr/lib/llvm-19/bin/ld.lld /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python /home/dev/tritonsmith/src/tritonsmith/worker compile /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json)
