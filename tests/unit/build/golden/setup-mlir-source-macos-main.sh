#!/bin/sh
# LLVM/MLIR from source in /Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904
set -eu

# store
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904.json'

# LLVM sources
# skipped if /Users/dev/Library/Application Support/tritonsmith/sources/.llvm-941a04e69ee8.done is up to date:
git init --quiet '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project'
git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' fetch --depth=1 --filter=blob:none -- https://github.com/llvm/llvm-project 941a04e69ee8fe4c7a162b2f1e215aa8df867534 || git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' fetch --depth=1 --filter=blob:none -- https://github.com/triton-lang/llvm-project 941a04e69ee8fe4c7a162b2f1e215aa8df867534
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/sources'
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8'
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' worktree add --force --force --detach --no-checkout '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8' 941a04e69ee8fe4c7a162b2f1e215aa8df867534)
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8' sparse-checkout set cmake llvm mlir third-party lld libunwind clang)
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8' checkout --force --detach 941a04e69ee8fe4c7a162b2f1e215aa8df867534)

# configure LLVM
# always:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904'
# skipped if /Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/.tritonsmith-configured is up to date:
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/CMakeCache.txt' '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/CMakeFiles/3.31.10'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904'
cat > '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-cache.cmake' <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /Users/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8/llvm' -B '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904'
set(CMAKE_MAKE_PROGRAM [[/Users/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[RelWithDebInfo]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/opt/homebrew/opt/llvm/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/opt/homebrew/opt/llvm/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[/opt/homebrew/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[/opt/homebrew/bin/ccache]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_PROJECTS [[mlir;lld;clang]] CACHE STRING "" FORCE)
set(LLVM_TARGETS_TO_BUILD [[Native;NVPTX;AMDGPU]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ASSERTIONS [[ON]] CACHE STRING "" FORCE)
set(LLVM_OPTIMIZED_TABLEGEN [[OFF]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_COMPILE_JOBS [[10]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_LINK_JOBS [[10]] CACHE STRING "" FORCE)
set(LLVM_USE_SPLIT_DWARF [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INSTALL_UTILS [[ON]] CACHE STRING "" FORCE)
set(LLVM_BUILD_TESTS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_BENCHMARKS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DOCS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_EXAMPLES [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_LIBXML2 [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_TERMINFO [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ZSTD [[OFF]] CACHE STRING "" FORCE)
set(MLIR_ENABLE_BINDINGS_PYTHON [[OFF]] CACHE STRING "" FORCE)
set(BUILD_SHARED_LIBS [[OFF]] CACHE STRING "" FORCE)
set(CMAKE_PROJECT_INCLUDE [[/Users/dev/tritonsmith/src/tritonsmith/build/llvm/target_options.cmake]] CACHE STRING "" FORCE)
set(TRITONSMITH_OPTIONS [[whole;rest]] CACHE STRING "" FORCE)
set(TRITONSMITH_TARGETS_whole [[MLIR.*;mlir.*;TableGenLsp.*;tblgen-.*;LLVM(Support|SupportBlake3|Core|TargetParser)]] CACHE STRING "" FORCE)
set(TRITONSMITH_TARGETS_rest [[.*]] CACHE STRING "" FORCE)
set(TRITONSMITH_OPTIONS_rest [[-g1;-gno-split-dwarf]] CACHE STRING "" FORCE)
EOF
(cd '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' && /Users/dev/tritonsmith/.venv/bin/cmake -C '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-cache.cmake' -G Ninja -S '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-941a04e69ee8/llvm' -B '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904')

# build LLVM
# always:
(cd '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' && env NINJA_STATUS='[%f/%t] ' /Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' -j10 FileCheck clang)

# Python environment: as in install-triton-macos-main.sh

# CUDA headers and tools: as in install-triton-macos-main.sh

# what Triton uses of LLVM
# always:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure'
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/.tritonsmith-about is up to date:
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/.ninja_deps'
# skipped if /Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/.tritonsmith-configured is up to date:
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/CMakeCache.txt' '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/CMakeFiles/3.31.10'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure'
cat > '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/tritonsmith-cache.cmake' <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /Users/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /Users/dev/triton -B '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure'
# LLVM: version unknown, commit unknown, RelWithDebInfo, assertions ON, RTTI OFF, shared libLLVM OFF, targets AMDGPU NVPTX Native, configuration 
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
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure' && /Users/dev/tritonsmith/.venv/bin/cmake -C '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure/tritonsmith-cache.cmake' -G Ninja -S /Users/dev/triton -B '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure')

# build LLVM
# always:
/Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure' build.ninja
set -- $(/Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/envs/dev/llvm-closure' -t inputs -E all | sed -n 's|^/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/||p')
for name in FileCheck opt; do
  ! /Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' -t query "bin/$name" > /dev/null 2>&1 || set -- "$@" "bin/$name"
done
/Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904' -j10 "$@"
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-built'
cp '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/build.ninja' '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-built/build.ninja'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-built/CMakeFiles'
cp '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/CMakeFiles/rules.ninja' '/Users/dev/Library/Application Support/tritonsmith/llvm/941a04e69ee8-RelWithDebInfo-asserts-0fbf8904/tritonsmith-built/CMakeFiles/rules.ninja'
