#!/bin/sh
# editable install of /home/dev/triton into /home/dev/.local/share/tritonsmith/envs/dev/venv
set -eu

# Python environment: as in install-triton-linux-main.sh

# CUDA headers and tools
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-nvcc-cu12-12.9.86.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial nvidia-cuda-nvcc-cu12==12.9.86)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-nvcc-13.3.33.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial nvidia-cuda-nvcc==13.3.33)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-cuobjdump-13.2.51.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial nvidia-cuda-cuobjdump==13.2.51)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-nvdisasm-13.2.51.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial nvidia-cuda-nvdisasm==13.2.51)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-crt-13.1.80.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial nvidia-cuda-crt==13.1.80)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-runtime-13.1.80.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial nvidia-cuda-runtime==13.1.80)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-cupti-cu12-12.8.90.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90.partial nvidia-cuda-cupti-cu12==12.8.90)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nvidia-cuda-cupti-13.3.35.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35.partial nvidia-cuda-cupti==13.3.35)
  mv /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35.partial /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.nlohmann-json-3.11.3.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/toolchain
if [ ! -d /home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3 ]; then
  rm -rf -- /home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3.partial
  (cd /home/dev/.local/share/tritonsmith/toolchain && /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target /home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3.partial nlohmann-json==3.11.3)
  mv /home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3.partial /home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3
fi
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-ptxas-9f0ff1ef661ff126 is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/bin
cp /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas /home/dev/triton/third_party/nvidia/backend/bin/ptxas
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-ptxas-blackwell-1a96529d2346c884 is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/bin
cp /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvcc-13.3.33/nvidia/cu13/bin/ptxas /home/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cuobjdump-4e8eada229cc4174 is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/bin
cp /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cuobjdump-13.2.51/nvidia/cu13/bin/cuobjdump /home/dev/triton/third_party/nvidia/backend/bin/cuobjdump
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-nvdisasm-e73da7bd662b9624 is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/bin
cp /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-nvdisasm-13.2.51/nvidia/cu13/bin/nvdisasm /home/dev/triton/third_party/nvidia/backend/bin/nvdisasm
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cudacrt-ed10e563d3fc096a is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/include
cp -RL /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-crt-13.1.80/nvidia/cu13/include/. /home/dev/triton/third_party/nvidia/backend/include
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cudart-ed10e563d3fc096a is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/include
cp -RL /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-runtime-13.1.80/nvidia/cu13/include/. /home/dev/triton/third_party/nvidia/backend/include
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cupti-ed10e563d3fc096a is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/include
cp -RL /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90/nvidia/cuda_cupti/include/. /home/dev/triton/third_party/nvidia/backend/include
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cupti-lib-2a6a505ae583ddcb is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/lib/cupti
cp -RL /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-cu12-12.8.90/nvidia/cuda_cupti/lib/. /home/dev/triton/third_party/nvidia/backend/lib/cupti
# skipped if /home/dev/.local/share/tritonsmith/toolchain/.copied-cupti-lib-blackwell-3959d98154824bc6 is up to date:
mkdir -p /home/dev/triton/third_party/nvidia/backend/lib/cupti-blackwell
cp -RL /home/dev/.local/share/tritonsmith/toolchain/nvidia-cuda-cupti-13.3.35/nvidia/cu13/lib/. /home/dev/triton/third_party/nvidia/backend/lib/cupti-blackwell

# configure Triton
# always:
for output in /home/dev/triton/python/triton/_C/libtriton*.so; do
  if [ -e "$output" ] && [ -e /home/dev/.local/share/tritonsmith/envs/dev/triton/.ninja_log ] && [ "$output" -nt /home/dev/.local/share/tritonsmith/envs/dev/triton/.ninja_log ]; then
    touch -t 197001020000 "$output"
  fi
done
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
# skipped if /home/dev/.local/share/tritonsmith/envs/dev/triton/.tritonsmith-about is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/envs/dev/triton/.ninja_deps
# skipped if /home/dev/.local/share/tritonsmith/envs/dev/triton/.tritonsmith-configured is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/envs/dev/triton/CMakeCache.txt /home/dev/.local/share/tritonsmith/envs/dev/triton/CMakeFiles/3.31.10
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
cat > /home/dev/.local/share/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /home/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /home/dev/triton -B /home/dev/.local/share/tritonsmith/envs/dev/triton
# LLVM: 19.1.7, commit 941a04e69ee8fe4c7a162b2f1e215aa8df867534, RelWithDebInfo, assertions ON, RTTI ON, shared libLLVM OFF, targets AMDGPU NVPTX X86, configuration 
# compiler: clang++ 19.1.7
set(CMAKE_MAKE_PROGRAM [[/home/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[TritonRelBuildWithAsserts]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY [[/home/dev/triton/python/triton/_C]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/usr/lib/llvm-19/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/usr/lib/llvm-19/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[sh;/home/dev/tritonsmith/src/tritonsmith/build/retry_without_header.sh;env;CCACHE_BASEDIR=/home/dev/.local/share/tritonsmith;CCACHE_NOHASHDIR=1;CCACHE_ABSSTDERR=1;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_IGNOREOPTIONS=-Xclang=-isysroot*;sh;/home/dev/tritonsmith/src/tritonsmith/build/through_link.sh;/home/dev/triton;/home/dev/.local/share/tritonsmith/envs/dev/triton/source;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[sh;/home/dev/tritonsmith/src/tritonsmith/build/retry_without_header.sh;env;CCACHE_BASEDIR=/home/dev/.local/share/tritonsmith;CCACHE_NOHASHDIR=1;CCACHE_ABSSTDERR=1;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_IGNOREOPTIONS=-Xclang=-isysroot*;sh;/home/dev/tritonsmith/src/tritonsmith/build/through_link.sh;/home/dev/triton;/home/dev/.local/share/tritonsmith/envs/dev/triton/source;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS [[-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.]] CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS [[-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.]] CACHE STRING "" FORCE)
set(CMAKE_EXE_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(CMAKE_MODULE_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(CMAKE_SHARED_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_WERROR [[ON]] CACHE STRING "" FORCE)
set(LLVM_SYSPATH [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DIRS [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/include]] CACHE STRING "" FORCE)
set(LLVM_LIBRARY_DIR [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/lib]] CACHE STRING "" FORCE)
set(LLVM_DIR [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/lib/cmake/llvm]] CACHE STRING "" FORCE)
set(MLIR_DIR [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/lib/cmake/mlir]] CACHE STRING "" FORCE)
set(LLD_DIR [[/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/lib/cmake/lld]] CACHE STRING "" FORCE)
set(Python3_EXECUTABLE [[/home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python]] CACHE STRING "" FORCE)
set(Python3_INCLUDE_DIR [[/usr/include/python3.11]] CACHE STRING "" FORCE)
set(LLVM_EXTERNAL_LIT [[/home/dev/.local/share/tritonsmith/envs/dev/venv/bin/lit]] CACHE STRING "" FORCE)
set(nanobind_DIR [[/home/dev/.local/share/tritonsmith/envs/dev/venv/lib/python3.11/site-packages/nanobind/cmake]] CACHE STRING "" FORCE)
set(CMAKE_PROJECT_INCLUDE [[/home/dev/tritonsmith/src/tritonsmith/build/llvm/precompiled_headers.cmake]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH [[compiler]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_compiler_FOLDERS [[bin;lib;third_party/nvidia/lib]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_compiler_HEADERS [["mlir/IR/BuiltinOps.h";"triton/Dialect/Triton/IR/Dialect.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_WITHOUT [[bin/triton-llvm-opt.cpp]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_OPTIONS [[SHELL:-Xclang -relocatable-pch;-Xclang=-isysroot/home/dev/.local/share/tritonsmith/envs/dev/triton;-fdebug-prefix-map=/home/dev/.local/share/tritonsmith/envs/dev/triton=.;-DTRITONSMITH_WORKSPACE_87c6d2aabec301f9]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PYTHON_MODULE [[ON]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PROTON [[ON]] CACHE STRING "" FORCE)
set(TRITON_BUILD_UT [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_WITH_CCACHE [[ON]] CACHE STRING "" FORCE)
set(TRITON_CODEGEN_BACKENDS [[nvidia;amd]] CACHE STRING "" FORCE)
set(TRITON_PARALLEL_LINK_JOBS [[16]] CACHE STRING "" FORCE)
set(TRITON_WHEEL_DIR [[/home/dev/triton/python/triton]] CACHE STRING "" FORCE)
set(TRITON_CACHE_PATH [[/home/dev/.local/share/tritonsmith/triton-home/941a04e6/.triton]] CACHE STRING "" FORCE)
set(TRITON_VERSION [[3.8.0]] CACHE STRING "" FORCE)
set(TRITON_OFFLINE_BUILD [[ON]] CACHE STRING "" FORCE)
set(JSON_SYSPATH [[/home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3/nlohmann_json]] CACHE STRING "" FORCE)
set(TRITON_PTXAS_PATH [[/home/dev/triton/third_party/nvidia/backend/bin/ptxas]] CACHE STRING "" FORCE)
set(TRITON_PTXAS_BLACKWELL_PATH [[/home/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell]] CACHE STRING "" FORCE)
set(TRITON_CUOBJDUMP_PATH [[/home/dev/triton/third_party/nvidia/backend/bin/cuobjdump]] CACHE STRING "" FORCE)
set(TRITON_NVDISASM_PATH [[/home/dev/triton/third_party/nvidia/backend/bin/nvdisasm]] CACHE STRING "" FORCE)
set(TRITON_CUDACRT_PATH [[/home/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
set(TRITON_CUDART_PATH [[/home/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
set(TRITON_CUPTI_INCLUDE_PATH [[/home/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
set(TRITON_CUPTI_LIB_PATH [[/home/dev/triton/third_party/nvidia/backend/lib/cupti]] CACHE STRING "" FORCE)
set(TRITON_CUPTI_LIB_BLACKWELL_PATH [[/home/dev/triton/third_party/nvidia/backend/lib/cupti-blackwell]] CACHE STRING "" FORCE)
set(JSON_INCLUDE_DIR [[/home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3/nlohmann_json/include]] CACHE STRING "" FORCE)
set(CUPTI_INCLUDE_DIR [[/home/dev/triton/third_party/nvidia/backend/include]] CACHE STRING "" FORCE)
set(ROCM_INCLUDE_DIR [[/home/dev/triton/third_party/amd/backend/include]] CACHE STRING "" FORCE)
EOF
(cd /home/dev/.local/share/tritonsmith/envs/dev/triton && /home/dev/tritonsmith/.venv/bin/cmake -C /home/dev/.local/share/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake -G Ninja -S /home/dev/triton -B /home/dev/.local/share/tritonsmith/envs/dev/triton)
# always:
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
[ -L /home/dev/.local/share/tritonsmith/envs/dev/triton/source ] || [ ! -e /home/dev/.local/share/tritonsmith/envs/dev/triton/source ]
ln -sfn /home/dev/triton /home/dev/.local/share/tritonsmith/envs/dev/triton/source
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
[ -L /home/dev/.local/share/tritonsmith/envs/dev/triton/venv ] || [ ! -e /home/dev/.local/share/tritonsmith/envs/dev/triton/venv ]
ln -sfn /home/dev/.local/share/tritonsmith/envs/dev/venv /home/dev/.local/share/tritonsmith/envs/dev/triton/venv
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
cat > /home/dev/.local/share/tritonsmith/envs/dev/triton/gdbinit <<'EOF'
# Written by tritonsmith. Use: gdb -ix /home/dev/.local/share/tritonsmith/envs/dev/triton/gdbinit, or `source` this file.
# Symbols are searched when a program is loaded, so these commands come first.
directory "/home/dev/.local/share/tritonsmith/envs/dev/triton"
python gdb.execute('set debug-file-directory ' + gdb.parameter('debug-file-directory') + ':' + '/home/dev/.local/share/tritonsmith/envs/dev/triton')
EOF
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/triton
cat > /home/dev/.local/share/tritonsmith/envs/dev/triton/lldbinit <<'EOF'
# Written by tritonsmith. Use: lldb -S /home/dev/.local/share/tritonsmith/envs/dev/triton/lldbinit, or `source` this file.
# Symbols are searched when a program is loaded, so these commands come first.
settings append target.source-map . "/home/dev/.local/share/tritonsmith/envs/dev/triton"
settings append target.debug-file-search-paths "/home/dev/.local/share/tritonsmith/envs/dev/triton"
EOF

# build Triton: as in install-triton-linux-main.sh

# editable install
mkdir -p /home/dev/triton/build
mkdir -p /home/dev/triton/build
[ -L /home/dev/triton/build/cmake.linux-x86_64-cpython-3.11 ] || [ ! -e /home/dev/triton/build/cmake.linux-x86_64-cpython-3.11 ]
ln -sfn /home/dev/.local/share/tritonsmith/envs/dev/triton /home/dev/triton/build/cmake.linux-x86_64-cpython-3.11
(cd /home/dev/.local/share/tritonsmith/envs/dev && env -u DEBUG -u LLVM_BUILD_SHARED_LIBS -u REL_WITH_DEB_INFO -u ROCTRACER_INCLUDE_PATH -u TRITON_BUILD_DIR -u TRITON_BUILD_TUTORIALS -u TRITON_BUILD_WITH_ASAN -u TRITON_BUILD_WITH_O1 -u TRITON_EXT_ENABLED -u TRITON_LLVM_SYSTEM_SUFFIX -u TRITON_PLUGIN_DIRS -u TRITON_ROCPROFILER_SDK_INCLUDE_PATH -u TRITON_ROCTRACER_INCLUDE_PATH -u TRITON_STABLE_ABI -u TRITON_WHEEL_NAME -u TRITON_WHEEL_VERSION_SUFFIX CFLAGS='-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.' CXXFLAGS='-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.' JSON_SYSPATH=/home/dev/.local/share/tritonsmith/toolchain/nlohmann-json-3.11.3/nlohmann_json LLVM_SYSPATH=/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688 MAX_JOBS=16 PYBIND11_SYSPATH=/home/dev/.local/share/tritonsmith/envs/dev/venv/lib/python3.11/site-packages/pybind11 TRITON_APPEND_CMAKE_ARGS='-C /home/dev/.local/share/tritonsmith/envs/dev/triton/tritonsmith-cache.cmake' TRITON_BUILD_PROTON=ON TRITON_BUILD_WITH_CCACHE=ON TRITON_BUILD_WITH_CLANG_LLD=ON TRITON_CUDACRT_PATH=/home/dev/triton/third_party/nvidia/backend/include TRITON_CUDART_PATH=/home/dev/triton/third_party/nvidia/backend/include TRITON_CUOBJDUMP_PATH=/home/dev/triton/third_party/nvidia/backend/bin/cuobjdump TRITON_CUPTI_INCLUDE_PATH=/home/dev/triton/third_party/nvidia/backend/include TRITON_CUPTI_LIB_BLACKWELL_PATH=/home/dev/triton/third_party/nvidia/backend/lib/cupti-blackwell TRITON_CUPTI_LIB_PATH=/home/dev/triton/third_party/nvidia/backend/lib/cupti TRITON_HOME=/home/dev/.local/share/tritonsmith/triton-home/941a04e6 TRITON_NVDISASM_PATH=/home/dev/triton/third_party/nvidia/backend/bin/nvdisasm TRITON_OFFLINE_BUILD=ON TRITON_PARALLEL_LINK_JOBS=16 TRITON_PTXAS_BLACKWELL_PATH=/home/dev/triton/third_party/nvidia/backend/bin/ptxas-blackwell TRITON_PTXAS_PATH=/home/dev/triton/third_party/nvidia/backend/bin/ptxas TRITON_REL_BUILD_WITH_ASSERTS=ON TRITON_ROCM_INCLUDE_PATH=/home/dev/triton/third_party/amd/backend/include PATH=/usr/lib/llvm-19/bin:/home/dev/.local/share/tritonsmith/envs/dev/venv/bin:/home/dev/.local/share/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-7c5fc688/bin:/home/dev/tritonsmith/.venv/bin:/home/dev/tritonsmith/.venv/bin:"$PATH" /home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable /home/dev/triton)
