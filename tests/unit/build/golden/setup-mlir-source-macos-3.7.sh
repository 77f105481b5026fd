#!/bin/sh
# LLVM/MLIR from source in /Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb
set -eu

# LLVM sources
# until done, as /Users/dev/Library/Application Support/tritonsmith/sources/.llvm-7f77ca0dbda4.done tells:
git init --quiet '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project'
git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' fetch --depth=1 --filter=blob:none -- https://github.com/llvm/llvm-project 7f77ca0dbda4abbf9af06537b2c475f20ccd6007 || git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' fetch --depth=1 --filter=blob:none -- https://github.com/triton-lang/llvm-project 7f77ca0dbda4abbf9af06537b2c475f20ccd6007
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/sources'
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4'
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-project' worktree add --force --force --detach --no-checkout '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4' 7f77ca0dbda4abbf9af06537b2c475f20ccd6007)
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4' sparse-checkout set cmake llvm mlir third-party lld libunwind clang)
(cd '/Users/dev/Library/Application Support/tritonsmith/sources' && git -C '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4' checkout --force --detach 7f77ca0dbda4abbf9af06537b2c475f20ccd6007)

# configure LLVM
# always:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb'
# until done, as /Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb/.tritonsmith-configured tells:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb'
cat > '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb/tritonsmith-cache.cmake' <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /Users/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4/llvm' -B '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb'
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
set(LLVM_OPTIMIZED_TABLEGEN [[ON]] CACHE STRING "" FORCE)
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
EOF
(cd '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb' && /Users/dev/tritonsmith/.venv/bin/cmake --fresh -C '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb/tritonsmith-cache.cmake' -G Ninja -S '/Users/dev/Library/Application Support/tritonsmith/sources/llvm-7f77ca0dbda4/llvm' -B '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb')

# build LLVM
# always:
(cd '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb' && env NINJA_STATUS='[%f/%t] ' /Users/dev/tritonsmith/.venv/bin/ninja -C '/Users/dev/Library/Application Support/tritonsmith/llvm/7f77ca0dbda4-RelWithDebInfo-asserts-b79bbddb' -j10)
