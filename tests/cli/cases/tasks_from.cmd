# Tasks by sketches that are there: they print what they print of the matrices, and each mistake has its message.
awk 'BEGIN {
    print "%%MatrixMarket matrix array real general" >"A.mtx"; print 3000, 6 >"A.mtx"
    print "%%MatrixMarket matrix array real general" >"B.mtx"; print 3000, 2 >"B.mtx"
    x = 1
    for (j = 1; j <= 6; j++) for (i = 1; i <= 3000; i++) {
        x = (x * 16807) % 2147483647; a = x % 21 - 10; b[i] += j * a; print a >"A.mtx"
    }
    for (i = 1; i <= 3000; i++) print b[i] >"B.mtx"
    for (i = 1; i <= 3000; i++) { x = (x * 16807) % 2147483647; print b[i] + x % 101 - 50 >"B.mtx" }
}'
flashsketch gram -k 400 A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
s="flashsketch sketch -k 400"
$s A.mtx -o Y.npy && $s B.mtx -o C.npy || exit
flashsketch solve --from Y.npy C.npy -o X.npy
flashsketch ridge --from --lambda 1e4 Y.npy C.npy | grep -e '^X' -e residual
flashsketch gram --from Y.npy
flashsketch solve --from Y.npy C.npy --json | grep -v '"device_reason"' | sed -n 's/^\t"\([a-z_]*\)":.*/\1/p' | tr '\n' ' '; echo
flashsketch solve -k 400 --rhs B.mtx A.mtx -o - | cmp - X.npy && echo the same X
# A sketch in half precision is one too, with its rounding.
$s A.mtx --output-dtype f16 -o H.npy && flashsketch gram --from H.npy | grep error
try() { flashsketch "$@" || echo $?; }
$s --seed 1 B.mtx -o seed.npy && $s -M 8 B.mtx -o M.npy
$s -d 4000 A.mtx -o part.npy && $s -d 4000 --row0 1000 B.mtx -o late.npy
cp Y.npy bare.npy
try solve --from Y.npy
try solve --from Y.npy C.npy C.npy
try gram --from
try gram --from Y.npy C.npy
try solve --from Y.npy C.npy -k 400
try solve --from Y.npy C.npy --seed 0
try solve --from Y.npy C.npy --memory 1M
try solve --from Y.npy C.npy --batch-major
try solve --from Y.npy C.npy --rhs B.mtx
try solve --from Y.npy C.npy --exact
try ridge --from Y.npy C.npy
try solve --from Y.npy seed.npy -o X1.npy
try solve --from Y.npy M.npy -o X1.npy
try solve --from part.npy late.npy -o X1.npy
try gram --from late.npy -o X1.npy
try gram --from bare.npy -o X1.npy
try gram --from A.mtx -o X1.npy
try gram --from absent.npy -o X1.npy
printf 'x' | dd of=C.npy bs=1 seek=200 conv=notrunc 2>/dev/null
try solve --from Y.npy C.npy -o X1.npy
ls X*
