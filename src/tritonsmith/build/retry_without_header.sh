#!/bin/sh
# Runs a compile, and again without its precompiled header if it fails with it:
#     retry_without_header.sh PROGRAM [ARGUMENT ...]
# A name that the source does not include can make one of its own ambiguous. So what fails, fails by itself, and
# its errors are those of upstream's build. A header that cannot be precompiled, as an LLVM that nobody has tried may
# have one, becomes an empty one, with which all of its users fail first.
case " $* " in
    *" -include-pch "* | *" -emit-pch "*) ;;
    *) exec "$@" ;;
esac
said=$("$@" 2>&1)
code=$?
if [ "$code" -eq 0 ] || [ "$code" -gt 128 ]; then # of a signal: ^C, or no memory
    [ -z "$said" ] || printf '%s\n' "$said" >&2
    exit "$code"
fi
held='' passed=0
for word do
    shift
    if [ "$passed" -gt 0 ]; then
        passed=$((passed - 1))
        continue
    fi
    case $held$word in
        -Xclang-include-pch) held='' passed=6 && continue ;; # -Xclang FILE.pch -Xclang -include -Xclang FILE
        -Xclang-include) held='' passed=2 && continue ;; # -Xclang FILE
    esac
    [ -z "$held" ] || set -- "$@" "$held"
    held=''
    case $word in
        -Xclang) held=$word ;;
        *) set -- "$@" "$word" ;;
    esac
done
[ -z "$held" ] || set -- "$@" "$held"
"$@" || exit
echo "tritonsmith: compiled without the precompiled header, with which it fails" >&2
