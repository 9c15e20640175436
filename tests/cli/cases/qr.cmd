# A 3000 x 6 of integers, and the same with two columns that depend on the others: Q, R and pivots.
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
flashsketch qr A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch qr A.mtx
flashsketch qr A.mtx -o Q.npy -R R.npy | grep -v '^time'
flashsketch info Q.npy | sed -n 3p
flashsketch info R.npy | sed -n 3p
flashsketch qr A.mtx -R R1.npy | grep -c '^R' # R does not depend on whether Q is wanted
od -An -v -tf8 -w8 -j128 R.npy >r && od -An -v -tf8 -w8 -j128 R1.npy | paste r - |
    awk '{ if (($1 - $2) ^ 2 > 1e-20) print NR, $0; if (NR % 6 < int((NR - 1) / 6) + 1 && NR % 6 && $1 != 0) print NR, $1 }'
flashsketch svd --all Q.npy | grep values # Q is orthonormal
flashsketch solve -k 2000 --rhs A.mtx Q.npy -o R2.npy >/dev/null # Q R2 = A: R again
od -An -v -tf8 -w8 -j128 R2.npy | paste r - | awk '{ if (($1 - $2) ^ 2 > 1e-18) print NR, $0 }'
flashsketch qr A.mtx -o - | cmp - Q.npy
awk 'NR == 1 { print } NR == 2 { print 3000, 8 } NR > 2 { print; n = NR - 3; row[n % 3000] += $1; first[n] = $1 }
     END { for (i = 0; i < 3000; i++) print row[i]; for (i = 0; i < 3000; i++) print 2 * first[i] }' A.mtx >dependent.mtx
flashsketch qr dependent.mtx; echo $?
flashsketch qr dependent.mtx --pivot --pivots P.npy -o Q.npy -R R.npy | grep -v '^time'
flashsketch info P.npy | sed -n '2,3p'
od -An -v -td8 -w8 -j128 P.npy | sort -n | tr -d ' ' | tr '\n' ' '
echo
od -An -v -tf8 -w64 -j128 Q.npy | awk '{ if ($7 != 0 || $8 != 0) print "Q", NR }'
flashsketch qr dependent.mtx --pivot --rcond 0.99999 | grep rank
ls
