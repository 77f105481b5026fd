#!/bin/sh
# upstream's prebuilt LLVM in /Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64
set -eu

# download LLVM
# skipped if /Users/dev/Library/Application Support/tritonsmith/llvm/.llvm-PIN-macos-arm64.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/downloads'
curl --fail --location --continue-at - --output '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-PIN-macos-arm64.tar.gz.partial' https://oaitriton.blob.core.windows.net/public/llvm-builds/llvm-PIN-macos-arm64.tar.gz
echo '0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f  /Users/dev/Library/Application Support/tritonsmith/downloads/llvm-PIN-macos-arm64.tar.gz.partial' | sha256sum --check
mv '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-PIN-macos-arm64.tar.gz.partial' '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-PIN-macos-arm64.tar.gz'

# extract LLVM
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64'
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64.partial'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64.partial'
tar -xf '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-PIN-macos-arm64.tar.gz' --no-same-owner --strip-components=1 -C '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64.partial'
mv '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64.partial' '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-PIN-macos-arm64'
