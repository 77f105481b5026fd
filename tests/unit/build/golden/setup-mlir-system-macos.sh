#!/bin/sh
# installed LLVM 19.1.7 in /opt/homebrew/opt/llvm
set -eu
