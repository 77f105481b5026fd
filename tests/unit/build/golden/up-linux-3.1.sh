#!/bin/sh
# virtual environment of wheel
set -eu

# Python environment
# until done, as /home/dev/.local/share/tritonsmith/envs/wheel/.venv.done tells:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /usr/bin/python3.11 -m venv --clear /home/dev/.local/share/tritonsmith/envs/wheel/venv)
# until done, as /home/dev/.local/share/tritonsmith/envs/wheel/venv/.requirements.done tells:
(cd /home/dev/.local/share/tritonsmith/envs/wheel && /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check triton==3.1.0)

# compile vector-add
# always:
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add
mkdir -p /home/dev/.local/share/tritonsmith/envs/wheel/kernels
cat > /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json <<'EOF'
{
  "schema": 1,
  "file": "/home/dev/tritonsmith/src/tritonsmith/kernels/examples/vector_add.py",
  "kernel": "vector_add",
  "ir": false,
  "points": [
    {
      "id": "cuda-90-32",
      "target": [
        "cuda",
        90,
        32
      ],
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
      }
    },
    {
      "id": "hip-gfx942-64",
      "target": [
        "hip",
        "gfx942",
        64
      ],
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
      }
    }
  ],
  "output": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add",
  "scratch": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels",
  "results": "/home/dev/.local/share/tritonsmith/envs/wheel/kernels/results.jsonl",
  "jobs": 2,
  "timeout": 600,
  "strict": true,
  "keep": [],
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
  "stand-ins": [
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
  "gpus": {
    "cuda:90:32": {
      "known": {
        "warp": 32,
        "block-registers": 65536,
        "registers": 65536,
        "block-threads": 1024,
        "block-shared-default": 49152,
        "shared": 233472,
        "block-shared": 232448,
        "threads": 2048
      },
      "of_model": {
        "name": "NVIDIA H100 80GB HBM3",
        "multiprocessors": 132,
        "clock": 1980000,
        "memory-clock": 2619000,
        "memory-bus": 5120,
        "l2": 52428800,
        "memory": 85017493504
      },
      "model": "NVIDIA H100 80GB HBM3",
      "names": {
        "driver": {
          "max_shared_mem": "block-shared",
          "max_num_regs": "block-registers",
          "multiprocessor_count": "multiprocessors",
          "warpSize": "warp",
          "sm_clock_rate": "clock",
          "mem_clock_rate": "memory-clock",
          "mem_bus_width": "memory-bus"
        },
        "torch": {
          "name": "name",
          "multi_processor_count": "multiprocessors",
          "total_memory": "memory",
          "warp_size": "warp",
          "max_threads_per_multi_processor": "threads",
          "max_threads_per_block": "block-threads",
          "regs_per_multiprocessor": "registers",
          "shared_memory_per_block": "block-shared-default",
          "shared_memory_per_block_optin": "block-shared",
          "shared_memory_per_multiprocessor": "shared",
          "L2_cache_size": "l2",
          "clock_rate": "clock",
          "memory_clock_rate": "memory-clock",
          "memory_bus_width": "memory-bus",
          "is_integrated": "integrated",
          "is_multi_gpu_board": "multi-gpu-board",
          "uuid": "uuid"
        }
      }
    },
    "hip:gfx942:64": {
      "known": {
        "warp": 64,
        "block-threads": 1024,
        "arch": "gfx942:sramecc+:xnack-",
        "block-shared": 65536,
        "threads": 2048,
        "shared": 65536
      },
      "of_model": {
        "name": "AMD Instinct MI300X",
        "multiprocessors": 304,
        "memory-bus": 8192,
        "l2": 4194304
      },
      "model": "AMD Instinct MI300X",
      "names": {
        "driver": {
          "max_shared_mem": "block-shared",
          "max_num_regs": "block-registers",
          "multiprocessor_count": "multiprocessors",
          "sm_clock_rate": "clock",
          "mem_clock_rate": "memory-clock",
          "mem_bus_width": "memory-bus",
          "arch": "arch",
          "warpSize": "warp",
          "max_threads_per_sm": "threads",
          "cooperativeLaunch": "cooperative"
        },
        "torch": {
          "name": "name",
          "gcnArchName": "arch",
          "multi_processor_count": "multiprocessors",
          "total_memory": "memory",
          "warp_size": "warp",
          "max_threads_per_multi_processor": "threads",
          "max_threads_per_block": "block-threads",
          "shared_memory_per_block": "block-shared",
          "shared_memory_per_multiprocessor": "shared",
          "L2_cache_size": "l2",
          "clock_rate": "clock",
          "memory_clock_rate": "memory-clock",
          "memory_bus_width": "memory-bus",
          "is_integrated": "integrated",
          "is_multi_gpu_board": "multi-gpu-board",
          "uuid": "uuid"
        }
      }
    }
  },
  "disassemblers": {}
}
EOF
(cd /home/dev/.local/share/tritonsmith/envs/wheel/kernels && env -u TRITON_INTERPRET -u TRITON_STORE_BINARY_ONLY -u TRITON_CACHE_MANAGER TRITON_HIP_LLD_PATH=/usr/lib/llvm-19/bin/ld.lld /home/dev/.local/share/tritonsmith/envs/wheel/venv/bin/python /home/dev/tritonsmith/src/tritonsmith/kernels/worker.py compile /home/dev/.local/share/tritonsmith/envs/wheel/kernels/vector_add.request.json)
