# A 3000 x 6 whose singular values are near 333, and a first column that is 100 times as long: svd and pca.
awk 'BEGIN {
    print "%%MatrixMarket matrix array real general" >"A.mtx"; print 3000, 6 >"A.mtx"
    print "%%MatrixMarket matrix array real general" >"B.mtx"; print 3000, 2 >"B.mtx"
    x = 1
    for (j = 1; j <= 6; j++) for (i = 1; i <= 3000; i++) {
        x = (x * 16807) % 2147483647; a = x % 21 - 10; b[i] += j * a; print (j == 1 ? 100 * a : a) >"A.mtx"
    }
    for (i = 1; i <= 3000; i++) print b[i] >"B.mtx"
    for (i = 1; i <= 3000; i++) { x = (x * 16807) % 2147483647; print b[i] + x % 101 - 50 >"B.mtx" }
}'
flashsketch svd -r 2 A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch svd --all A.mtx -S S.npy -U U.npy -V V.npy
for file in S U V; do flashsketch info $file.npy | sed -n '2,3p'; done
flashsketch svd -r 1 A.mtx | grep -e rank -e values
flashsketch svd -r 1 --oversampling 2 --power 3 A.mtx | grep -e rank -e values -e reads
flashsketch svd -r 1 --oversampling 2 --one-read A.mtx -S one.npy -V V1.npy -U U1.npy | grep -e rank -e reads
flashsketch svd --all A.mtx -S - | cmp - S.npy
flashsketch pca --all A.mtx --mean M.npy --scores T.npy --values W.npy --components C.npy --variances v.npy | grep -v '^time'
for file in M T W C v; do flashsketch info $file.npy | grep -e matrix; done
# The scores of a component have its variance, and the mean 0.
od -An -v -tf8 -w48 -j128 T.npy | awk '{ for (i = 1; i <= 6; i++) { s[i] += $i; q[i] += $i * $i } }
    END { for (i = 1; i <= 6; i++) printf "%.6g %d\n", q[i] / 2999, (s[i] * s[i] > 1e-12) }' >scores
od -An -v -tf8 -w8 -j128 v.npy | awk '{ printf "%.6g 0\n", $1 }' | cmp - scores
# A wide matrix: its transpose has the same singular values.
flashsketch svd -r 6 --batch-major A.mtx | grep -e '^A' -e values
# Twenty singular values: the first ten and the last are shown.
awk 'BEGIN { for (i = 1; i <= 40; i++) for (j = 1; j <= 20; j++) printf "%d%s", i == j ? 21 - j : 0, j < 20 ? "," : "\n" }' >D.csv
flashsketch svd --all D.csv | grep values
flashsketch pca -r 12 D.csv | grep -e all -e error
