# On a terminal: a bar for work over a second, none with -q, none for less; no binary data; Ctrl-C leaves nothing.
command -v script >/dev/null || exit 77
export TERM=xterm SHELL=/bin/sh
{ printf "\0\0\10\2\0\0\3\350\0\0\0\7"; head -c 7000 "$(command -v flashsketch)"; } >A.idx
slowly="(head -c 99 A.idx; sleep 1.2; tail -c +100 A.idx)"
on_terminal() { script -qec "$1" /dev/null | tr '\r' '\n' >../seen; } # beside this folder, which is listed at the end
bars() { echo "$1: $(($(grep -c '^\[[#.]*\] *reading standard input, ' ../seen) > 0)) bar, $(ls)"; rm -f Y.npy*; }

on_terminal "$slowly | flashsketch sketch -k 9 - -o Y.npy" </dev/null;      bars "over a second"
on_terminal "$slowly | flashsketch sketch -q -k 9 - -o Y.npy" </dev/null;   bars "over a second, quiet"
on_terminal "$slowly | TERM=dumb flashsketch sketch -k 9 - -o Y.npy" </dev/null; bars "on a dumb terminal"
on_terminal "cat A.idx | flashsketch sketch -k 9 - -o Y.npy" </dev/null;    bars "less"

on_terminal "flashsketch sketch -k 9 A.idx" </dev/null;                     grep -o 'flashsketch: .*' ../seen
on_terminal "flashsketch sketch -k 9 - -o Y.npy" </dev/null;                grep -o 'flashsketch: .*' ../seen

mkfifo pipe
sleep 20 >pipe & # nothing comes, and it does not end
{ until ls | grep -q part; do sleep 0.02; done; printf '\003'; sleep 0.2; } |
    on_terminal "trap : INT; flashsketch sketch -k 9 - -o Y.npy <pipe; echo it ended with \$?"
grep -o 'it ended with .*' ../seen
kill $!
ls
