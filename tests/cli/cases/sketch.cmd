# One matrix of integers, by every way in and out, gives the same bytes; nothing but them is left.
{ printf "\0\0\10\2\0\0\3\350\0\0\0\7"; head -c 7000 "$(command -v flashsketch)"; } >A.idx
gzip -k A.idx
s="flashsketch sketch -k 90 --quality fast --seed 0x123456789abcdef"
$s A.idx -o Y.npy &&
$s -o Y1.npy A.idx.gz &&
$s - -o Y2.npy <A.idx &&
cat A.idx.gz | $s -o Y3.npy - &&
$s A.idx >Y4.npy &&
$s A.idx --device cpu --threads 1 -q --output - | cat >Y5.npy &&
$s A.idx -d 1000 --row0 0 --family blockperm -M 1 --kappa 1 -s 4 --shuffle rows --interleave 1 -o Y6.npy
for copy in Y?.npy; do cmp Y.npy $copy || echo "$copy differs"; done
# The output is an input; a file that is there is replaced.
flashsketch info Y.npy
flashsketch sketch -k 20 Y.npy -o Y1.npy && flashsketch info Y1.npy
head -c 128 Y1.npy | tail -c +11
ls
