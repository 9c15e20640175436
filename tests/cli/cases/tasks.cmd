# A 3000 x 6 of integers, B = A (1 ... 6)' and noise in the second column: every task, for people and as files.
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
flashsketch solve -k 400 --rhs B.mtx A.mtx -o X.npy --exact
flashsketch info X.npy | sed -n 3p
flashsketch ridge -k 400 --lambda 1e4 --rhs B.mtx A.mtx
flashsketch solve -k 4 --rhs B.mtx A.mtx
flashsketch solve -k 400 --rcond 0.99 --rhs B.mtx A.mtx | sed -n 4p
flashsketch gram -k 400 A.mtx -o G.npy --exact
flashsketch info G.npy | sed -n 3p
flashsketch gram -k 400 -M 8 --shuffle none A.mtx | grep -c '^time'
flashsketch ose -k 400 A.mtx
flashsketch ose -k 400 -r 2 A.mtx | sed -n 3p
# X in a file is X in a pipe, where it is alone; the same from a sparse matrix, and transposed.
flashsketch solve -k 400 --rhs B.mtx A.mtx -o - | cmp - X.npy
awk 'NR == 1 { print "%%MatrixMarket matrix coordinate real general" } NR == 2 { print 3000, 6, 18000 }
     NR > 2 { n = NR - 3; print n % 3000 + 1, int(n / 3000) + 1, $1 }' A.mtx >sparse.mtx
flashsketch solve -k 400 --rhs B.mtx sparse.mtx --exact | grep -e residual -e exact
flashsketch ose -k 400 sparse.mtx | grep error
