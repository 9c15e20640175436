# Every mistake has its sentence, and none leaves a file behind or changes the one that is there.
{ printf "\0\0\10\2\0\0\0\144\0\0\0\7"; head -c 700 "$(command -v flashsketch)"; } >A.idx
printf '%%%%MatrixMarket matrix coordinate pattern general\n9 9 1\n3 3\n' >A.mtx
head -c 24 "$(command -v flashsketch)" >raw
echo precious >Y.npy
try() { flashsketch sketch "$@" </dev/null || echo $?; }
try
try A.idx
try -k 5
try -k 5 -M 2 --k 4 A.idx -o Y.npy
try -k 0 A.idx
try -k 5 A.idx A.mtx
try -k 5 absent -o Y.npy
try -k 5 A.idx -o absent/Y.npy
try -k 5 A.idx -o .
try -k 5 . -o Y.npy
try -k 5 - -o Y.npy
try -k 5 raw -o Y.npy
try -k 5 raw --shape 2x3 -o Y.npy
try -k 5 raw --dtype f32 -o Y.npy
try -k 5 A.idx --columns -o Y.npy
try -k 5 raw --shape 2 --dtype f32 -o Y.npy
try -k 5 raw --shape 0x3 --dtype f32 -o Y.npy
try -k 5 raw --shape 2x-3 --dtype f32 -o Y.npy
try -k 5 raw --shape 2x4 --dtype f32 -o Y.npy
try -k 5 raw --shape 9223372036854775807x2 --dtype f64 -o Y.npy
try -k 5 raw --shape 2x3 --dtype i8 -o Y.npy
try -k 5 A.idx --output-dtype bf16 -o Y.npy
try -k 5 A.idx --tensor weight -o Y.npy
try -k 5 A.idx -d 99 -o Y.npy
try -k 5 A.idx -d 100 --row0 1 -o Y.npy
try -k 5 A.idx --row0 1 -o Y.npy
try -k 5 A.idx --row0 0 -o Y.npy
try -k 5 A.idx -M 6 -o Y.npy
try -k 5 A.idx --device gpu -o Y.npy
try -k 5 A.idx --device cuda:x -o Y.npy
try -k 5 A.mtx --device cuda -o Y.npy
FLASHSKETCH_CUDA_PLUGIN=absent.so try -k 5 A.idx --device cuda -o Y.npy
try -k 5 A.idx --threads 0 -o Y.npy
try -k 5 A.idx --colour
try -k 5 A.idx --memory 12Q -o Y.npy
try -k 5 A.idx --memory 1K -o Y.npy
try -k 5 A.idx --memory 9000000T -o Y.npy
try -k 5 A.idx --resume
try -k 5 A.idx --every 5 -o Y.npy
cat Y.npy
ls
