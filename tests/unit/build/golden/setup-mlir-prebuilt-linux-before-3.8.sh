#!/bin/sh
# upstream's prebuilt LLVM in /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64
set -eu

# download LLVM
# skipped if /home/dev/.local/share/tritonsmith/llvm/.llvm-PIN-ubuntu-x64.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/downloads
curl --fail --location --continue-at - --output /home/dev/.local/share/tritonsmith/downloads/llvm-PIN-ubuntu-x64.tar.gz.partial https://oaitriton.blob.core.windows.net/public/llvm-builds/llvm-PIN-ubuntu-x64.tar.gz
echo '0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f  /home/dev/.local/share/tritonsmith/downloads/llvm-PIN-ubuntu-x64.tar.gz.partial' | sha256sum --check
mv /home/dev/.local/share/tritonsmith/downloads/llvm-PIN-ubuntu-x64.tar.gz.partial /home/dev/.local/share/tritonsmith/downloads/llvm-PIN-ubuntu-x64.tar.gz

# extract LLVM
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64.partial
mkdir -p /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64.partial
tar -xf /home/dev/.local/share/tritonsmith/downloads/llvm-PIN-ubuntu-x64.tar.gz --no-same-owner --strip-components=1 -C /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64.partial
mv /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64.partial /home/dev/.local/share/tritonsmith/llvm/llvm-PIN-ubuntu-x64
