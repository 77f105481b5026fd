#!/bin/sh
# upstream's prebuilt LLVM in /Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1
set -eu

# download LLVM
# skipped if /Users/dev/Library/Application Support/tritonsmith/llvm/.llvm-941a04e6-macos-arm64-1.done is up to date:
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/downloads'
curl --fail --location --continue-at - --output '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-941a04e6-macos-arm64-1.tar.gz.partial' https://oaitriton.blob.core.windows.net/public/llvm-builds/llvm-941a04e6-macos-arm64-1.tar.gz
echo '055906a91eca4565b8d0b04a0c97bf122faded02daa9a4f1edb6d2f43c2ad996  /Users/dev/Library/Application Support/tritonsmith/downloads/llvm-941a04e6-macos-arm64-1.tar.gz.partial' | sha256sum --check
mv '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-941a04e6-macos-arm64-1.tar.gz.partial' '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-941a04e6-macos-arm64-1.tar.gz'

# extract LLVM
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1'
rm -rf -- '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1.partial'
mkdir -p '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1.partial'
tar -xf '/Users/dev/Library/Application Support/tritonsmith/downloads/llvm-941a04e6-macos-arm64-1.tar.gz' --no-same-owner --strip-components=1 -C '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1.partial'
mv '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1.partial' '/Users/dev/Library/Application Support/tritonsmith/llvm/llvm-941a04e6-macos-arm64-1'
