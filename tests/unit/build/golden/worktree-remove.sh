#!/bin/sh
# remove worktree wt-3.4.0
set -eu

# worktree
mv 'ROOT/CLONE-wt-3.4.0' 'ROOT/.CLONE-wt-3.4.0.tritonsmith'
(cd 'ROOT/CLONE/.git' && git -C 'ROOT/CLONE/.git' -c core.hooksPath=/dev/null worktree repair 'ROOT/.CLONE-wt-3.4.0.tritonsmith')
(cd 'ROOT/CLONE/.git' && git -C 'ROOT/CLONE/.git' -c core.hooksPath=/dev/null worktree remove --force --force 'ROOT/.CLONE-wt-3.4.0.tritonsmith')
rm -rf -- HOME/envs/wt-3.4.0
rm -rf -- HOME/worktrees/wt-3.4.0.toml HOME/worktrees/wt-3.4.0.json
