#!/bin/sh
# /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f at ?
set -eu

# LLVM sources
# skipped if /home/dev/.local/share/tritonsmith/sources/.a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f.done is up to date:
mkdir -p /home/dev/.local/share/tritonsmith/downloads
curl --fail --location --continue-at - --output /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz.partial https://github.com/llvm/llvm-project/archive/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz
echo 'abababababababababababababababababababababababababababababababab  /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz.partial' | sha256sum --check
mv /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz.partial /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz
rm -rf -- /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f
echo 'abababababababababababababababababababababababababababababababab  /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz' | sha256sum --check
rm -rf -- /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f.partial
mkdir -p /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f.partial
tar -xf /home/dev/.local/share/tritonsmith/downloads/a66376b0dc3b2ea8a84fda26faca287980986f78.tar.gz --no-same-owner --strip-components=1 -C /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f.partial --wildcards --no-wildcards-match-slash '*/cmake' '*/llvm' '*/mlir' '*/third-party'
mv /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f.partial /home/dev/.local/share/tritonsmith/sources/a66376b0dc3b2ea8a84fda26faca287980986f78-b6c0d19f
