#!/bin/sh
# /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b at a66376b0dc3b2ea8a84fda26faca287980986f78
set -eu

# LLVM sources
# skipped if /home/dev/.local/share/tritonsmith/sources/.llvm-a66376b0dc3b.done is up to date:
git init --quiet /home/dev/.local/share/tritonsmith/sources/llvm-project
git -C /home/dev/.local/share/tritonsmith/sources/llvm-project fetch --depth=1 --filter=blob:none -- https://mirror.example/llvm.git a66376b0dc3b2ea8a84fda26faca287980986f78
mkdir -p /home/dev/.local/share/tritonsmith/sources
rm -rf -- /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-project worktree add --force --force --detach --no-checkout /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b a66376b0dc3b2ea8a84fda26faca287980986f78)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b sparse-checkout set cmake llvm mlir third-party)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b checkout --force --detach a66376b0dc3b2ea8a84fda26faca287980986f78)
