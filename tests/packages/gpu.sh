#!/bin/sh
# gpu.sh - installs libflashsketch and the wheel of the CUDA plugin from dist/ on a machine with a GPU, and checks them.
#
# usage: gpu.sh [DIST]
#
# Needs python3 and a driver, no network and no compiler: the command needs no other package.  `flashsketch check` compares
# digests and products on the GPU with those of the definition.  With FIND_LINKS=FOLDER, which has wheels of NumPy and
# scipy-openblas32, Python and a solver on the CPU are tried too.  Exits with 77 where there is no GPU.
set -eu
dist=$(cd "${1:-dist}" && pwd)
nvidia-smi -L >/dev/null 2>&1 || { echo "gpu.sh: there is no GPU here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for wheel in "$dist"/libflashsketch-*"$(uname -m)".whl "$dist"/libflashsketch_cuda*"$(uname -m)".whl; do
    [ -f "$wheel" ] || { echo "gpu.sh: $dist has no ${wheel##*/}: scripts/wheels.sh makes it"; exit 1; }
    python3 -m zipfile -e "$wheel" "$work"
done
command=$work/flashsketch/bin/flashsketch
chmod +x "$command"
unset FLASHSKETCH_CUDA_PLUGIN FLASHSKETCH_LIBRARY LD_LIBRARY_PATH || true
"$command" info
"$command" check | tee "$work/report"
! grep -q 'no GPU was checked' "$work/report"
grep -E '^cuda.* (digests|products) are right' "$work/report" >/dev/null
if [ -n "${FIND_LINKS-}" ]; then
    for wheel in "$FIND_LINKS"/numpy-*.whl "$FIND_LINKS"/scipy_openblas32-*.whl; do
        python3 -m zipfile -e "$wheel" "$work"
    done
    PYTHONPATH=$work python3 -c '
import flashsketch as fs, numpy as np
print(fs.describe())
assert fs.describe().splitlines()[1].startswith("cuda")
assert np.allclose(fs.lstsq(np.eye(300, 3), np.ones(300)).x, 1)'
fi
echo "the wheels work on this GPU"
