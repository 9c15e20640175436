# Of this machine; a variable that chooses a variant is left as it was.
FLASHSKETCH_CUDA_PLUGIN=absent.so FLASHSKETCH_ISA=base flashsketch info
FLASHSKETCH_ISA=abacus flashsketch info | sed -n 3p
# Where there is no plugin that is a fact, not an error: once, and not in what the tasks call "device".  Where there is
# one, built beside the command or installed, this cannot be seen.
unset FLASHSKETCH_CUDA_PLUGIN
{ find "$(dirname "$(command -v flashsketch)")/.." -name 'libflashsketch_cuda.so*'; /sbin/ldconfig -p; } 2>/dev/null |
    grep -q libflashsketch_cuda && exit 77
flashsketch info | grep -e ^auto -e ^gpu
flashsketch info | grep -c -e 'loaded' -e 'shared object'
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n2\n4\n' >b.mtx
flashsketch gram -k 2 b.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch gram -k 2 b.mtx --json | grep device
FLASHSKETCH_CUDA_PLUGIN=absent.so flashsketch gram -k 2 b.mtx --json | grep device
FLASHSKETCH_CUDA_PLUGIN=absent.so flashsketch gram -k 2 --device cpu b.mtx --json | grep device
