#!/bin/sh
# editable install of /Users/dev/triton into /Users/dev/Library/Application Support/tritonsmith/envs/dev/venv
set -eu

# Python environment
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/.venv.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev'
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev' && /opt/homebrew/bin/python3.11 -m venv --clear '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv')
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/.requirements.done is up to date:
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check 'lit>=17,<20' nanobind==2.10.2 'setuptools>=40.8.0' wheel)

# CUDA headers and tools
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-nvcc-cu12-12.9.86.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial' nvidia-cuda-nvcc-cu12==12.9.86)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-nvcc-13.3.33.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial' nvidia-cuda-nvcc==13.3.33)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-cuobjdump-13.2.51.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial' nvidia-cuda-cuobjdump==13.2.51)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-nvdisasm-13.2.51.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial' nvidia-cuda-nvdisasm==13.2.51)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-crt-13.1.80.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial' nvidia-cuda-crt==13.1.80)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nvidia-cuda-runtime-13.1.80.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_aarch64 --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial' nvidia-cuda-runtime==13.1.80)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.nlohmann-json-3.11.3.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/toolchain'
if [ ! -d '/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3' ]; then
  rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3.partial'
  (cd '/Users/dev/Library/Application Support/tritonsmith/toolchain' && '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target '/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3.partial' nlohmann-json==3.11.3)
  mv '/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3.partial' '/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3'
fi
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-ptxas-bc008baff3d17abe is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/bin
cp '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas' /Users/dev/triton/third_party/nvidia/backend/bin/ptxas
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-ptxas-blackwell-2d105e881de75712 is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/bin
cp '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33/nvidia/cu13/bin/ptxas' /Users/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-cuobjdump-6f1ecc9127479005 is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/bin
cp '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51/nvidia/cu13/bin/cuobjdump' /Users/dev/triton/third_party/nvidia/backend/bin/cuobjdump
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-nvdisasm-48a26c0f039390fd is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/bin
cp '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51/nvidia/cu13/bin/nvdisasm' /Users/dev/triton/third_party/nvidia/backend/bin/nvdisasm
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-cudacrt-93c54666b49cc6a8 is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/include
cp -RL '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80/nvidia/cu13/include'/. /Users/dev/triton/third_party/nvidia/backend/include
# skipped if /Users/dev/Library/Application Support/tritonsmith/toolchain/.copied-cudart-93c54666b49cc6a8 is up to date:
mkdir -p /Users/dev/triton/third_party/nvidia/backend/include
cp -RL '/Users/dev/Library/Application Support/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80/nvidia/cu13/include'/. /Users/dev/triton/third_party/nvidia/backend/include

# configure Triton
# always:
for output in /Users/dev/triton/python/triton/_C/libtriton*.so; do
  if [ -e "$output" ] && [ -e '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/.ninja_log' ] && [ "$output" -nt '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/.ninja_log' ]; then
    touch -t 197001020000 "$output"
  fi
done
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton'
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/.tritonsmith-about is up to date:
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/.ninja_deps'
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/.tritonsmith-configured is up to date:
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/CMakeCache.txt' '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/CMakeFiles/3.31.10'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton'
cat > '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake' <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /Users/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /Users/dev/triton -B '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton'
# LLVM: 19.1.7, commit 941a04e69ee8fe4c7a162b2f1e215aa8df867534, RelWithDebInfo, assertions ON, RTTI ON, shared libLLVM OFF, targets AMDGPU NVPTX X86, configuration 
# compiler: clang++ 19.1.7
set(CMAKE_MAKE_PROGRAM [[/Users/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[TritonRelBuildWithAsserts]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY [[/Users/dev/triton/python/triton/_C]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/opt/homebrew/opt/llvm/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/opt/homebrew/opt/llvm/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[/opt/homebrew/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[/opt/homebrew/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS [[-Wno-error=deprecated-declarations]] CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS [[-Wno-error=deprecated-declarations]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_WERROR [[ON]] CACHE STRING "" FORCE)
set(LLVM_SYSPATH [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DIRS [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/include]] CACHE STRING "" FORCE)
set(LLVM_LIBRARY_DIR [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/lib]] CACHE STRING "" FORCE)
set(LLVM_DIR [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/lib/cmake/llvm]] CACHE STRING "" FORCE)
set(MLIR_DIR [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/lib/cmake/mlir]] CACHE STRING "" FORCE)
set(LLD_DIR [[/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/lib/cmake/lld]] CACHE STRING "" FORCE)
set(Python3_EXECUTABLE [[/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python]] CACHE STRING "" FORCE)
set(Python3_INCLUDE_DIR [[/opt/homebrew/Frameworks/Python.framework/Versions/3.11/include/python3.11]] CACHE STRING "" FORCE)
set(LLVM_EXTERNAL_LIT [[/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/lit]] CACHE STRING "" FORCE)
set(nanobind_DIR [[/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/lib/python3.11/site-packages/nanobind/cmake]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PYTHON_MODULE [[ON]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PROTON [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_UT [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_WITH_CCACHE [[ON]] CACHE STRING "" FORCE)
set(TRITON_CODEGEN_BACKENDS [[nvidia;amd]] CACHE STRING "" FORCE)
set(TRITON_PARALLEL_LINK_JOBS [[10]] CACHE STRING "" FORCE)
set(TRITON_WHEEL_DIR [[/Users/dev/triton/python/triton]] CACHE STRING "" FORCE)
set(TRITON_CACHE_PATH [[/Users/dev/Library/Application Support/tritonsmith/triton-home/941a04e6/.triton]] CACHE STRING "" FORCE)
set(TRITON_VERSION [[3.8.0]] CACHE STRING "" FORCE)
set(TRITON_OFFLINE_BUILD [[ON]] CACHE STRING "" FORCE)
set(JSON_SYSPATH [[/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3/nlohmann_json]] CACHE STRING "" FORCE)
set(TRITON_PTXAS_PATH [[/Users/dev/triton/third_party/nvidia/backend/bin/ptxas]] CACHE STRING "" FORCE)
set(TRITON_PTXAS_BLACKWELL_PATH [[/Users/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell]] CACHE STRING "" FORCE)
set(TRITON_CUOBJDUMP_PATH [[/Users/dev/triton/third_party/nvidia/backend/bin/cuobjdump]] CACHE STRING "" FORCE)
set(TRITON_NVDISASM_PATH [[/Users/dev/triton/third_party/nvidia/backend/bin/nvdisasm]] CACHE STRING "" FORCE)
set(TRITON_CUDACRT_PATH [[/Users/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
set(TRITON_CUDART_PATH [[/Users/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
EOF
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton' && /Users/dev/tritonsmith/.venv/bin/cmake -C '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake' -G Ninja -S /Users/dev/triton -B '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton')

# build Triton
# always:
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton' && env NINJA_STATUS='[%f/%t] ' /Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton' -j10)
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-built'
cp '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/build.ninja' '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-built/build.ninja'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-built/CMakeFiles'
cp '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/CMakeFiles/rules.ninja' '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-built/CMakeFiles/rules.ninja'

# editable install
mkdir -p /Users/dev/triton/build
mkdir -p /Users/dev/triton/build
[ -L /Users/dev/triton/build/cmake.macosx-14.0-arm64-cpython-3.11 ] || [ ! -e /Users/dev/triton/build/cmake.macosx-14.0-arm64-cpython-3.11 ]
ln -sfn '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton' /Users/dev/triton/build/cmake.macosx-14.0-arm64-cpython-3.11
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev' && env -u DEBUG -u LLVM_BUILD_SHARED_LIBS -u REL_WITH_DEB_INFO -u ROCTRACER_INCLUDE_PATH -u TRITON_BUILD_DIR -u TRITON_BUILD_TUTORIALS -u TRITON_BUILD_WITH_ASAN -u TRITON_BUILD_WITH_CLANG_LLD -u TRITON_BUILD_WITH_O1 -u TRITON_EXT_ENABLED -u TRITON_LLVM_SYSTEM_SUFFIX -u TRITON_PLUGIN_DIRS -u TRITON_ROCM_INCLUDE_PATH -u TRITON_ROCPROFILER_SDK_INCLUDE_PATH -u TRITON_ROCTRACER_INCLUDE_PATH -u TRITON_STABLE_ABI -u TRITON_WHEEL_NAME -u TRITON_WHEEL_VERSION_SUFFIX CFLAGS=-Wno-error=deprecated-declarations CXXFLAGS=-Wno-error=deprecated-declarations JSON_SYSPATH='/Users/dev/Library/Application Support/tritonsmith/toolchain/nlohmann-json-3.11.3/nlohmann_json' LLVM_SYSPATH='/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' MAX_JOBS=10 PYBIND11_SYSPATH='/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/lib/python3.11/site-packages/pybind11' TRITON_APPEND_CMAKE_ARGS='-C '"'"'/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake'"'"'' TRITON_BUILD_PROTON=OFF TRITON_BUILD_WITH_CCACHE=ON TRITON_CUDACRT_PATH=/Users/dev/triton/third_party/nvidia/backend/include TRITON_CUDART_PATH=/Users/dev/triton/third_party/nvidia/backend/include TRITON_CUOBJDUMP_PATH=/Users/dev/triton/third_party/nvidia/backend/bin/cuobjdump TRITON_HOME='/Users/dev/Library/Application Support/tritonsmith/triton-home/941a04e6' TRITON_NVDISASM_PATH=/Users/dev/triton/third_party/nvidia/backend/bin/nvdisasm TRITON_OFFLINE_BUILD=ON TRITON_PARALLEL_LINK_JOBS=10 TRITON_PTXAS_BLACKWELL_PATH=/Users/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell TRITON_PTXAS_PATH=/Users/dev/triton/third_party/nvidia/backend/bin/ptxas TRITON_REL_BUILD_WITH_ASSERTS=ON PATH='/opt/homebrew/opt/llvm/bin:/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin:/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/bin:/Users/dev/tritonsmith/.venv/bin:/Users/dev/tritonsmith/.venv/bin':"$PATH" '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable /Users/dev/triton)

# compile vector-add
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels/vector_add'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels'
cat > '/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels/vector_add.request.json' <<'EOF'
{
  "file": "/Users/dev/tritonsmith/src/tritonsmith/compiler/examples/vector_add.py",
  "kernel": "vector_add",
  "ir": false,
  "points": [
    {
      "target": [
        "cuda",
        80,
        32
      ],
      "id": "cuda-80-32",
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
  "output": "/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels/vector_add",
  "scratch": "/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels",
  "results": "/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels/results.jsonl",
  "jobs": 1,
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
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels' && env -u TRITON_INTERPRET -u TRITON_STORE_BINARY_ONLY -u TRITON_CACHE_MANAGER TRITON_HIP_LLD_PATH=/opt/homebrew/opt/llvm/bin/ld.lld '/Users/dev/Library/Application Support/tritonsmith/envs/dev/venv/bin/python' /Users/dev/tritonsmith/src/tritonsmith/worker compile '/Users/dev/Library/Application Support/tritonsmith/envs/dev/kernels/vector_add.request.json')
