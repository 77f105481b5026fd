#!/bin/sh
# link /Users/dev/triton/compile_commands.json
set -eu

# compile commands
(cd '/Users/dev/Library/Application Support/tritonsmith/envs/dev' && /Users/dev/tritonsmith/.venv/bin/python -m tritonsmith.build.compile_commands --output '/Users/dev/Library/Application Support/tritonsmith/envs/dev/compile_commands.json' '/Users/dev/Library/Application Support/tritonsmith/envs/dev/triton/compile_commands.json' '/Users/dev/Library/Application Support/tritonsmith/llvm/ENTRY/compile_commands.json')
mkdir -p /Users/dev/triton
[ -L /Users/dev/triton/compile_commands.json ] || [ ! -e /Users/dev/triton/compile_commands.json ]
ln -sfn '/Users/dev/Library/Application Support/tritonsmith/envs/dev/compile_commands.json' /Users/dev/triton/compile_commands.json
