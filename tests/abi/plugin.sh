#!/bin/sh
# plugin.sh PLUGIN ENTRY - a CUDA plugin exports its entry and nothing else, and needs no library of CUDA: the runtime
# is inside, the driver is found when it is opened.  Exits 77 without nm or readelf.
set -eu
plugin=$1 entry=$2
for tool in nm readelf; do command -v $tool >/dev/null || { echo "abi.plugin: no $tool here"; exit 77; }; done
exported=$(nm -D --defined-only "$plugin" | awk '{ print $3 }')
needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
usual='libgomp libomp libstdc\+\+ libm libgcc_s libc libdl librt libpthread ld-linux[-a-z0-9_]*'
printf 'exports:\n%s\nneeds:\n%s\n' "$exported" "$needed"
[ "$exported" = "$entry" ] || { echo "it must export $entry and nothing else"; exit 1; }
if strange=$(echo "$needed" | grep -v -E "^($(echo "$usual" | tr ' ' '|'))\.so"); then
    echo "it must not need $strange"
    exit 1
fi
