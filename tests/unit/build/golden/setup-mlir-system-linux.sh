#!/bin/sh
# installed LLVM 19.1.7 in /usr/lib/llvm-19
set -eu
