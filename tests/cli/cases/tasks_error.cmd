# A wanted error in place of k: the sketch that 'flashsketch plan' names, for every command that knows A.
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
try() { flashsketch "$@" </dev/null || echo $?; }
planned=$(flashsketch plan -n 6 -d 3000 --error 0.3 | sed -n 's/^next *flashsketch sketch \(.*\) A.npy.*/\1/p')
echo "$planned"
flashsketch sketch $planned A.mtx -o Y.npy
flashsketch sketch --error 0.3 A.mtx -o Z.npy && cmp Y.npy Z.npy && cmp Y.npy.json Z.npy.json
for task in "solve --rhs B.mtx" "ridge --lambda 1 --rhs B.mtx" gram ose; do
    flashsketch $task $planned A.mtx | grep -v '^time' >wanted
    flashsketch $task --error 0.3 A.mtx | grep -v '^time' | cmp - wanted && grep '^S ' wanted
done
flashsketch ose --error 0.3 A.mtx | awk '/^error/ { sub(";", "", $6); print ($6 < 0.3) }'
flashsketch ose -r 2 --error 0.3 A.mtx | grep '^S ' # the columns that count
flashsketch plan -n 2 -d 3000 --error 0.3 | head -n 1
try sketch A.mtx -o Y.npy
try sketch --error 0.3 -k 400 A.mtx -o Y.npy
try solve --error 0.3 -k 400 --rhs B.mtx A.mtx
try gram --error 0 A.mtx
try gram --error 0.3 -s 2 A.mtx
try gram --error 0.3 --kappa 2 A.mtx
try gram --error 0.3 --family srht A.mtx
try gram --error 0.3 --shuffle groups A.mtx
try gram --error 0.3 -M 4 A.mtx
try gram --error 0.001 A.mtx
try gram --error 0.3 --from Y.npy
