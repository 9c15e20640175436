# What the solvers tell as JSON objects.
awk 'BEGIN { x = 1; for (i = 0; i < 500; i++) { for (j = 0; j < 4; j++) { x = (x * 16807) % 2147483647; a[j] = x % 21 - 10 }
    print a[0], a[1], a[2], a[3] >"A.txt"; print a[0] + 2 * a[1] + 3 * a[2] + 4 * a[3] >"B.txt" } }'
flashsketch qr A.txt >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
flashsketch lstsq --json --rhs B.txt A.txt --seed 0xffffffffffffffff --measure-error
flashsketch qr --json --pivot A.txt -o Q.npy
flashsketch qr --json A.txt | grep -c pivots
flashsketch svd --json -r 1 --oversampling 1 A.txt
flashsketch pca --json --all A.txt
flashsketch leverage --json --exact A.txt
