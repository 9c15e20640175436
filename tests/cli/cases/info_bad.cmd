echo hello >text
printf '{' | gzip >stub.gz
try() { flashsketch info "$@" </dev/null || echo $?; }
try absent
try text
try stub.gz
try -
try text text
try --tensor w
try text --tensor
try --jsonn
