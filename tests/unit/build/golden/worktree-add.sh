#!/bin/sh
# worktree wt-3.4.0 at 3.4.0
set -eu

# worktree
mkdir -p HOME/worktrees
cat > HOME/worktrees/wt-3.4.0.json <<'EOF'
RECORD
EOF
mkdir -p ROOT
(cd 'ROOT/CLONE/.git' && git -C 'ROOT/CLONE/.git' -c core.hooksPath=/dev/null worktree add --detach 'ROOT/.CLONE-wt-3.4.0.tritonsmith' COMMIT)
mv 'ROOT/.CLONE-wt-3.4.0.tritonsmith' 'ROOT/CLONE-wt-3.4.0'
(cd 'ROOT/CLONE/.git' && git -C 'ROOT/CLONE/.git' -c core.hooksPath=/dev/null worktree repair 'ROOT/CLONE-wt-3.4.0')
mkdir -p HOME/worktrees
cat > HOME/worktrees/wt-3.4.0.toml <<'EOF'
# worktree of Triton at 3.4.0
inherits = "dev"

[triton]
source = "ROOT/CLONE-wt-3.4.0"
EOF
