# Two parts and the whole; each mistake has its sentence, and none leaves a file behind.
{ printf "\0\0\10\2\0\0\0\144\0\0\0\7"; head -c 700 "$(command -v flashsketch)"; } >A.idx
{ printf "\0\0\10\2\0\0\0\74\0\0\0\7"; head -c 420 "$(command -v flashsketch)"; } >A1.idx
{ printf "\0\0\10\2\0\0\0\50\0\0\0\7"; head -c 700 "$(command -v flashsketch)" | tail -c 280; } >A2.idx
s="flashsketch sketch -k 20 -d 100 -s 4" # whose sums are exact
$s A.idx -o Y.npy && $s A1.idx -o Y1.npy && $s A2.idx --row0 60 -o Y2.npy
flashsketch add Y2.npy Y1.npy -o Y3.npy && cmp Y.npy Y3.npy && cmp Y.npy.json Y3.npy.json
flashsketch add Y1.npy Y2.npy | cmp Y.npy
flashsketch info Y2.npy | tail -n 1
try() { flashsketch add "$@" || echo $?; }
try
try absent -o Y4.npy
try Y1.npy Y.npy -o Y4.npy
try Y1.npy Y2.npy -o absent/Y4.npy
try Y1.npy A.idx -o Y4.npy
cp Y2.npy Y5.npy
try Y1.npy Y5.npy -o Y4.npy
cp Y1.npy.json Y5.npy.json
try Y1.npy Y5.npy -o Y4.npy
ls
