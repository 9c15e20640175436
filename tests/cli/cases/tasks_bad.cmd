# What is wrong gets a sentence, and no file is left behind.
try() { flashsketch "$@" </dev/null || echo $?; }
matrix() { printf '%%%%MatrixMarket matrix array real general\n%s\n' "$1"; shift; printf '%s\n' "$@"; }
matrix '3 2' 1 2 3 4 5 nan >nan.mtx
matrix '3 1' 0 0 0 >zero.mtx
matrix '3 1' 1 2 4 >b.mtx
matrix '4 1' 1 2 3 4 >long.mtx
matrix '3 2' 1 2 3 1 2 3 >twice.mtx
flashsketch gram -k 2 b.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
try solve b.mtx
try solve -k 2 b.mtx
try solve --rhs b.mtx b.mtx
try ridge -k 2 --rhs b.mtx b.mtx
try ridge -k 2 --rhs b.mtx --lambda -1 b.mtx
try solve -k 2 --rhs b.mtx --rcond 1 b.mtx
try solve -k 2 --rhs long.mtx b.mtx -o x.npy
try solve -k 2 --rhs absent b.mtx
try solve -k 2 --rhs b.mtx nan.mtx -o x.npy
try ridge -k 2 --lambda 1 --rhs nan.mtx b.mtx
try gram -k 2 nan.mtx -o x.npy
try ose -k 2 nan.mtx
try ose -k 2 zero.mtx
try ose -k 2 twice.mtx
try ose -k 2 -r 0 b.mtx
try ose -k 2 --device cuda b.mtx
try gram -k 2 --exact --device cuda b.mtx
try gram -k 2 -d 4 b.mtx
try gram -k 2 b.mtx -o absent/G.npy
try gram -k 2 --device gpu b.mtx
try solve -k 2 --rhs b.mtx zero.mtx | sed -n '4,5p'
try solve -k 2 --rhs zero.mtx b.mtx | grep residual
ls
