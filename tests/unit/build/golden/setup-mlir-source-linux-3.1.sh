#!/bin/sh
# LLVM/MLIR from source in /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e
set -eu

# LLVM sources
# until done, as /home/dev/.local/share/tritonsmith/sources/.llvm-10dc3a8e916d.done tells:
git init --quiet /home/dev/.local/share/tritonsmith/sources/llvm-project
git -C /home/dev/.local/share/tritonsmith/sources/llvm-project fetch --depth=1 --filter=blob:none -- https://github.com/llvm/llvm-project 10dc3a8e916d73291269e5e2b82dd22681489aa1 || git -C /home/dev/.local/share/tritonsmith/sources/llvm-project fetch --depth=1 --filter=blob:none -- https://github.com/triton-lang/llvm-project 10dc3a8e916d73291269e5e2b82dd22681489aa1
mkdir -p /home/dev/.local/share/tritonsmith/sources
rm -rf -- /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-project worktree add --force --force --detach --no-checkout /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d 10dc3a8e916d73291269e5e2b82dd22681489aa1)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d sparse-checkout set cmake llvm mlir third-party)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d checkout --force --detach 10dc3a8e916d73291269e5e2b82dd22681489aa1)

# configure LLVM
# always:
mkdir -p /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e
# until done, as /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e/.tritonsmith-configured tells:
mkdir -p /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e
cat > /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e/tritonsmith-cache.cmake <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /home/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d/llvm -B /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e
set(CMAKE_MAKE_PROGRAM [[/home/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[RelWithDebInfo]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/usr/lib/llvm-19/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/usr/lib/llvm-19/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[/usr/bin/ccache]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_PROJECTS [[mlir]] CACHE STRING "" FORCE)
set(LLVM_TARGETS_TO_BUILD [[Native;NVPTX;AMDGPU]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ASSERTIONS [[ON]] CACHE STRING "" FORCE)
set(LLVM_OPTIMIZED_TABLEGEN [[ON]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_COMPILE_JOBS [[16]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_LINK_JOBS [[16]] CACHE STRING "" FORCE)
set(LLVM_USE_SPLIT_DWARF [[ON]] CACHE STRING "" FORCE)
set(LLVM_INSTALL_UTILS [[ON]] CACHE STRING "" FORCE)
set(LLVM_BUILD_TESTS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_BENCHMARKS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DOCS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_EXAMPLES [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_LIBXML2 [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_TERMINFO [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ZSTD [[OFF]] CACHE STRING "" FORCE)
set(MLIR_ENABLE_BINDINGS_PYTHON [[OFF]] CACHE STRING "" FORCE)
set(LLVM_USE_LINKER [[lld]] CACHE STRING "" FORCE)
EOF
(cd /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e && /home/dev/tritonsmith/.venv/bin/cmake --fresh -C /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e/tritonsmith-cache.cmake -G Ninja -S /home/dev/.local/share/tritonsmith/sources/llvm-10dc3a8e916d/llvm -B /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e)

# build LLVM
# always:
(cd /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e && env NINJA_STATUS='[%f/%t] ' /home/dev/tritonsmith/.venv/bin/ninja -C /home/dev/.local/share/tritonsmith/llvm/10dc3a8e916d-RelWithDebInfo-asserts-b0d1917e -j16)
