# Leverage scores of 3000 rows: all alike but for one, which alone has the last column.
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
awk 'NR == 1 { print } NR == 2 { print 3000, 7 } NR > 2 { print } END { for (i = 0; i < 3000; i++) print i == 1234 ? 5 : 0 }' A.mtx >C.mtx
flashsketch leverage A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch leverage --exact C.mtx -o exact.npy
flashsketch leverage C.mtx -o scores.npy --error 0.05 | sed -n '2p;4p;6,7p'
for file in exact scores; do flashsketch info $file.npy | sed -n '2,3p'; done
od -An -v -tf8 -w8 -j128 exact.npy | awk '{ s += $1; if ($1 < 0 || $1 > 1 + 1e-12) print NR, $1 } END { printf "%.6f\n", s }'
od -An -v -tf8 -w8 -j128 scores.npy >estimated
od -An -v -tf8 -w8 -j128 exact.npy | paste estimated - | awk '{ e = $1 / $2 - 1; q += e * e } END { print q / NR < 0.1 ^ 2 }'
flashsketch leverage C.mtx -o - --error 0.05 | cmp - scores.npy
flashsketch leverage --exact C.mtx --batch-major; echo $?
