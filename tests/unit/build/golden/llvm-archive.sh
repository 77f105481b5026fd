#!/bin/sh
# upstream's prebuilt LLVM in /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2
set -eu

# download LLVM
# skipped if /home/dev/.local/share/tritonsmith/llvm/.llvm-a66376b0-ubuntu-x64-2.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/downloads
curl --fail --location --continue-at - --output /home/dev/.local/share/tritonsmith/downloads/llvm-a66376b0-ubuntu-x64-2.tar.gz.partial https://oaitriton.blob.core.windows.net/public/llvm-builds/llvm-a66376b0-ubuntu-x64-2.tar.gz
echo 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  /home/dev/.local/share/tritonsmith/downloads/llvm-a66376b0-ubuntu-x64-2.tar.gz.partial' | sha256sum --check
mv /home/dev/.local/share/tritonsmith/downloads/llvm-a66376b0-ubuntu-x64-2.tar.gz.partial /home/dev/.local/share/tritonsmith/downloads/llvm-a66376b0-ubuntu-x64-2.tar.gz

# extract LLVM
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2.partial
mkdir -p /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2.partial
tar -xf /home/dev/.local/share/tritonsmith/downloads/llvm-a66376b0-ubuntu-x64-2.tar.gz --no-same-owner --strip-components=1 -C /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2.partial
mv /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2.partial /home/dev/.local/share/tritonsmith/llvm/llvm-a66376b0-ubuntu-x64-2
