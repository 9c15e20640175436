#!/bin/sh
# includes.sh SOURCE - apps/grass includes public headers, its own, and of src the definition alone: def/.
set -eu
cd "$1/apps/grass"
[ "$(ls ./*.c ./*.h ./*.cu | wc -l)" -ge 20 ] || { echo "apps/grass is not here"; exit 1; }
stray=$(grep -H -o '#include "[^"]*"' ./*.c ./*.h ./*.cu | sed 's/^\.\///; s/#include //; s/"//g' |
    while IFS=: read -r file header; do
        case $header in
        def/* | flashsketch*.h) ;;
        */*) echo "$file: $header" ;;
        *) [ -f "$header" ] || echo "$file: $header" ;;
        esac
    done)
if [ -n "$stray" ]; then
    printf 'neither public, nor of apps/grass, nor of def/:\n%s\n' "$stray"
    exit 1
fi
