#!/bin/sh
# virtual environment of wheel
set -eu

# Python environment
# until done, as /Users/dev/Library/Application Support/tritonsmith/envs/wheel/.venv.done tells:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel'
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel' && /opt/homebrew/bin/python3.11 -m venv --clear '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv')
# until done, as /Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/.requirements.done tells:
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel' && '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/bin/python' -m pip install --quiet --disable-pip-version-check triton==3.1.0)

# compile vector-add
# always:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels'
cat > '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add.request.json' <<'EOF'
{
  "file": "/Users/dev/tritonsmith/src/tritonsmith/kernels/examples/vector_add.py",
  "kernel": "vector_add",
  "signature": {
    "x_ptr": "*fp32",
    "y_ptr": "*fp32",
    "out_ptr": "*fp32",
    "n_elements": "i32"
  },
  "constexprs": {
    "BLOCK": 1024
  },
  "targets": [
    [
      "cuda",
      90,
      32
    ],
    [
      "hip",
      "gfx942",
      64
    ]
  ],
  "output": "/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add"
}
EOF
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels' && env -u PYTHONPATH TRITON_CACHE_DIR='/Users/dev/Library/Application Support/tritonsmith/envs/wheel/triton-cache' '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/venv/bin/python' /Users/dev/tritonsmith/src/tritonsmith/kernels/worker.py '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add.request.json' '/Users/dev/Library/Application Support/tritonsmith/envs/wheel/kernels/vector_add.json')
