# A 3000 x 6 of integers, B = A (1 ... 6)' and noise in the second column: least squares, for people and as files.
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
flashsketch lstsq --rhs B.mtx A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch lstsq --rhs B.mtx A.mtx -o X.npy
flashsketch info X.npy | sed -n 3p
flashsketch lstsq --rhs B.mtx --lambda 1e4 A.mtx -q | sed -n '3,4p;7p'
for method in iterate normal direct; do
    flashsketch lstsq --rhs B.mtx --method $method A.mtx --seed 0x7 | sed -n '3p;7p'
done
flashsketch lstsq --rhs B.mtx --method iterate --max-iterations 1 --tolerance 1e-300 A.mtx | grep -c 'tolerance was not reached'
flashsketch lstsq --rhs B.mtx --method iterate --tolerance 0.5 A.mtx | grep -c 'tolerance was not reached'
flashsketch lstsq --rhs B.mtx --rcond 0.99999 --method direct A.mtx | grep '^rank'
# The first right-hand side is met exactly: X has the integers 1 ... 6 to rounding, in the first of two columns.
od -An -v -tf8 -w16 -j128 X.npy | awk '{ if (($1 - NR) ^ 2 > 1e-24) print "X", NR, $1 } END { print NR }'
# X in a file is X in a pipe, where it is alone; A in two files, in a pipe and sparse is the same matrix.
flashsketch lstsq --rhs B.mtx A.mtx -o - | cmp - X.npy
same() { grep -e '^A ' -e '^residual'; }
awk 'NR == 1 { print "%%MatrixMarket matrix coordinate real general" } NR == 2 { print 3000, 6, 18000 }
     NR > 2 { n = NR - 3; print n % 3000 + 1, int(n / 3000) + 1, $1 }' A.mtx >sparse.mtx
flashsketch lstsq --rhs B.mtx sparse.mtx | same
flashsketch lstsq --rhs B.mtx - <A.mtx | same
awk 'NR > 2 { n = NR - 3; row[n % 3000] = row[n % 3000] " " $1 } END { for (i = 0; i < 3000; i++) print row[i] }' A.mtx >A.txt
awk 'NR > 2 { n = NR - 3; row[n % 3000] = row[n % 3000] " " $1 } END { for (i = 0; i < 3000; i++) print row[i] }' B.mtx >B.txt
head -n 1234 A.txt >A0.txt && tail -n +1235 A.txt >A1.txt
head -n 1 B.txt >B0.txt && tail -n +2 B.txt >B1.txt
flashsketch lstsq --rhs B0.txt --rhs B1.txt A0.txt A1.txt --memory 10K | same
# Fewer equations than unknowns: the shortest of all X.
head -n 4 A.txt >few.txt && head -n 4 B.txt >b.txt
flashsketch lstsq --rhs b.txt few.txt | grep -e rank -e '^X'
