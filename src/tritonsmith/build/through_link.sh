#!/bin/sh
# Runs a compile with the paths of one tree spelled through a link to it:
#     through_link.sh TREE LINK PROGRAM [ARGUMENT ...]
# Seen from build folders that lie beside such links, all worktrees have the same relative paths. Those of
# precompiled headers are made relative here, because ccache leaves what follows -Xclang as it is.
tree=$1 link=$2
build=${link%/*}
venv=${build%/*}/venv
shift 2
for word do
    shift
    case $word in
        "$tree" | "$tree"/*) word=$link${word#"$tree"} ;;
        "$venv"/*) word=$build/venv${word#"$venv"} ;;
        -I"$venv"/*) word=-I$build/venv${word#-I"$venv"} ;;
        "$build"/CMakeFiles/tritonsmith_pch_*) word=${word#"$build"/} ;;
        -I"$tree" | -I"$tree"/*) word=-I$link${word#-I"$tree"} ;;
    esac
    set -- "$@" "$word"
done
exec "$@"
