#!/bin/sh
# link /home/dev/triton/compile_commands.json
set -eu

# compile commands
(cd /home/dev/.local/share/tritonsmith/envs/dev && /home/dev/tritonsmith/.venv/bin/python -m tritonsmith.build.compile_commands --output /home/dev/.local/share/tritonsmith/envs/dev/compile_commands.json /home/dev/.local/share/tritonsmith/envs/dev/triton/compile_commands.json /home/dev/.local/share/tritonsmith/llvm/ENTRY/compile_commands.json)
mkdir -p /home/dev/triton
[ -L /home/dev/triton/compile_commands.json ] || [ ! -e /home/dev/triton/compile_commands.json ]
ln -sfn /home/dev/.local/share/tritonsmith/envs/dev/compile_commands.json /home/dev/triton/compile_commands.json
