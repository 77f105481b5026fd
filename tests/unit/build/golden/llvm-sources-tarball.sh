#!/bin/sh
# /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a at ?
set -eu

# LLVM sources
# skipped if /home/dev/.local/share/tritonsmith/sources/.llvm_19.1.7-a0e5799a.done is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a
rm -rf -- /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a.partial
mkdir -p /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a.partial
tar -xf /srv/llvm_19.1.7.orig.tar.xz --no-same-owner --strip-components=1 -C /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a.partial --wildcards --no-wildcards-match-slash '*/cmake' '*/llvm' '*/mlir' '*/third-party'
mv /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a.partial /home/dev/.local/share/tritonsmith/sources/llvm_19.1.7-a0e5799a
