# What is wrong gets a message, and no file is left behind.
try() { flashsketch "$@" </dev/null || echo $?; }
matrix() { printf '%%%%MatrixMarket matrix array real general\n%s\n' "$1"; shift; printf '%s\n' "$@"; }
matrix '3 2' 1 2 3 4 5 nan >nan.mtx
matrix '3 1' 1 2 4 >b.mtx
matrix '4 1' 1 2 3 4 >long.mtx
matrix '2 3' 1 2 3 4 5 6 >wide.mtx
matrix '3 2' 1 2 3 1 2 3 >twice.mtx
printf '%%%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 1\n2 2 1\n' >sparse.mtx
flashsketch qr b.mtx >/dev/null 2>err || { grep -q OpenBLAS err && exit 77; cat err; exit 1; }
try lstsq
try lstsq b.mtx
try lstsq --rhs b.mtx
try lstsq --rhs b.mtx b.mtx --method fast
try lstsq --rhs b.mtx b.mtx --lambda -1
try lstsq --rhs b.mtx b.mtx --rcond 1
try lstsq --rhs b.mtx b.mtx --tolerance 0
try lstsq --rhs b.mtx b.mtx --max-iterations 0
try lstsq --rhs long.mtx b.mtx -o x.npy
try lstsq --rhs absent b.mtx -o x.npy
try lstsq --rhs b.mtx absent -o x.npy
try lstsq --rhs b.mtx nan.mtx -o x.npy
try lstsq --rhs nan.mtx b.mtx -o x.npy
try lstsq --rhs b.mtx b.mtx -o b.mtx
try lstsq --rhs b.mtx long.mtx -o ./b.mtx
try lstsq --rhs b.mtx b.mtx -o absent/x.npy
try lstsq --rhs b.mtx b.mtx --resume
try lstsq --rhs b.mtx b.mtx -k 3
try lstsq --rhs b.mtx b.mtx --memory 1
try lstsq --rhs b.mtx sparse.mtx --device cuda
try lstsq --rhs b.mtx --batch-major sparse.mtx sparse.mtx
try qr
try qr wide.mtx -o q.npy
try qr twice.mtx -o q.npy -R r.npy
try qr nan.mtx -o q.npy
try qr b.mtx --pivots p.npy
try qr b.mtx -o q.npy -R q.npy
try qr b.mtx -o q.npy -R ./q.npy
try qr b.mtx -o q.npy -R -
try qr b.mtx -o q.npy -R absent/r.npy
try qr b.mtx -o b.mtx
try qr b.mtx wide.mtx
try svd b.mtx
try svd -r 0 b.mtx
try svd -r 2 b.mtx
try svd -r 1 --all b.mtx
try svd --all --one-read b.mtx
try svd -r 1 --one-read --power 1 b.mtx
try svd -r 1 --power -1 b.mtx
try svd -r 1 nan.mtx -U u.npy -S s.npy -V v.npy
try svd -r 1 b.mtx --mean m.npy
try pca b.mtx
try pca -r 1 b.mtx --mean m.npy --scores m.npy
try pca -r 1 nan.mtx
try leverage wide.mtx
try leverage nan.mtx -o l.npy
try leverage --exact --error 0.1 b.mtx
try leverage --error 1 b.mtx
ls
