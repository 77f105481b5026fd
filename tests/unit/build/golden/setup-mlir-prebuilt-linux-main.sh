#!/bin/sh
# upstream's prebuilt LLVM in /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1
set -eu

# download LLVM
# skipped if /home/dev/.local/share/tritonsmith/llvm/.llvm-941a04e6-ubuntu-x64-1.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/downloads
curl --fail --location --continue-at - --output /home/dev/.local/share/tritonsmith/downloads/llvm-941a04e6-ubuntu-x64-1.tar.gz.partial https://oaitriton.blob.core.windows.net/public/llvm-builds/llvm-941a04e6-ubuntu-x64-1.tar.gz
echo '6da421dd5fe5eda50bb4abf679a86ed8cf7543fd0dbace7398a10828dc7ae2aa  /home/dev/.local/share/tritonsmith/downloads/llvm-941a04e6-ubuntu-x64-1.tar.gz.partial' | sha256sum --check
mv /home/dev/.local/share/tritonsmith/downloads/llvm-941a04e6-ubuntu-x64-1.tar.gz.partial /home/dev/.local/share/tritonsmith/downloads/llvm-941a04e6-ubuntu-x64-1.tar.gz

# extract LLVM
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1.partial
mkdir -p /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1.partial
tar -xf /home/dev/.local/share/tritonsmith/downloads/llvm-941a04e6-ubuntu-x64-1.tar.gz --no-same-owner --strip-components=1 -C /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1.partial
mv /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1.partial /home/dev/.local/share/tritonsmith/llvm/llvm-941a04e6-ubuntu-x64-1
