try() { flashsketch spec "$@" || echo $?; }
try
try -d 10
try -d 10 -k 4 A.npy
try -d 10 -k 4 -n 0
try -d 10 -k 4 --kappa 9
try -d 10 -k 17 --family srht
try -d 281474976710656 -k 2147483647 --family gaussian
try -d 10 -k 4 --quality best
