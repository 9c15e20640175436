try() { flashsketch coherence "$@" </dev/null || echo $?; }
printf '%%%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\nnan\n' >nan.mtx
printf '%%%%MatrixMarket matrix array real general\n3 1\n0\n0\n0\n' >zero.mtx
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 5000 1\n1 1\n' >wide.mtx
try
try nan.mtx
try -k 2 nan.mtx
try -k 2 zero.mtx
try -k 2 wide.mtx
try -k 2 --family sjlt zero.mtx
try -k 2 -d 4 zero.mtx
try -k 2 --delta 1 zero.mtx
try -k 2 --delta x zero.mtx
try -k 2 absent
