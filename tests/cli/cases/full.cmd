# A device without room: each command says that its output could not be written.
[ -c /dev/full ] || exit 77
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n' >A.mtx
flashsketch sketch -k 2 A.mtx >/dev/full; echo $?
flashsketch info A.mtx >/dev/full; echo $?
flashsketch version --json >/dev/full; echo $?
ls
