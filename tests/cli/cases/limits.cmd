# Less address space than the file has: what is read in panels and what is described needs none of it.  Pipes: a matrix
# that is read in order needs no temporary file; any other does, in TMPDIR.
[ "$(ulimit -v)" = unlimited ] || exit 77
(ulimit -v 600000; flashsketch version) >/dev/null 2>&1 || exit 77 # sanitizers need more
truncate -s 800000000 A # 2000000 x 100
{ printf '\223NUMPY\1\0\166\0'; printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (2000000, 100), }"; } >A.npy
truncate -s 800000128 A.npy
(ulimit -v 600000; flashsketch sketch -k 50 -q --memory 16M A.npy -o Y.npy; echo $?)
(ulimit -v 600000; flashsketch sketch -k 50 -q --memory 16M --shape 2000000x100 --dtype f32 A -o Z.npy; echo $?)
(ulimit -v 600000; flashsketch info A.npy; echo $?)
(ulimit -v 600000; flashsketch coherence -k 50 -q A.npy; echo $?)
cmp Y.npy Z.npy
export TMPDIR=absent
head -c 8000 A | flashsketch sketch -k 5 --shape 20x100 --dtype f32 - -o P.npy; echo $?
flashsketch info - <P.npy | head -n 1
cat P.npy | flashsketch info -; echo $?
cat P.npy | flashsketch coherence -k 3 -; echo $?
mkdir here
export TMPDIR=here
(trap '' XFSZ; ulimit -f 100; cat A.npy | flashsketch info -; echo $?)
head -c 100 A.npy | flashsketch sketch -k 5 - -o Q.npy; echo $?
head -c 1000 A.npy | flashsketch sketch -k 5 - -o Q.npy; echo $?
ls here
[ ! -e Q.npy ]
