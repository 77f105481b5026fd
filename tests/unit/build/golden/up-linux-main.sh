#!/bin/sh
# virtual environment of wheel
set -eu

# Python environment
# until done, as /home/dev/.local/share/tritonsmith/envs/wheel/.venv.done tells:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /usr/bin/python3.11 -m venv --clear /home/dev/.local/share/tritonsmith/envs/wheel/venv)
# until done, as /home/dev/.local/share/tritonsmith/envs/wheel/venv/.requirements.done tells:
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check triton)

# compile vector-add
# always:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels
cat > /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json <<'EOF'
{
  "file": "/home/dev/tritonsmith/src/tritonsmith/kernels/examples/vector_add.py",
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
  "output": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add"
}
EOF
(cd /home/dev/.local/share/tritonsmith/envs/wheel/kernels && env -u PYTHONPATH TRITON_CACHE_DIR=/home/dev/.local/share/tritonsmith/envs/wheel/triton-cache /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python /home/dev/tritonsmith/src/tritonsmith/kernels/worker.py /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.json)
