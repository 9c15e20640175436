# The members of --json.
{ echo '%%MatrixMarket matrix array real general'; echo 200 3; seq 600; } |
    awk 'NR > 2 { $1 = $1 * $1 % 97 } { print }' >A.mtx
{ echo '%%MatrixMarket matrix array real general'; echo 200 1; seq 200; } >b.mtx
flashsketch gram -k 20 A.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
# device_reason is there where a CUDA plugin found no GPU.
names() { grep -v '"device_reason"' | sed -n 's/^\t"\([a-z_]*\)":.*/\1/p' | tr '\n' ' '; echo; }
flashsketch solve -k 20 --rhs b.mtx A.mtx --json --exact | names
flashsketch ridge -k 20 --lambda 2 --rhs b.mtx A.mtx --json | names
flashsketch gram -k 20 A.mtx --json --exact | names
flashsketch ose -k 20 A.mtx --json | names
flashsketch solve -k 2 --rhs b.mtx A.mtx --json | grep -e residual -e high -e '"rank"'
