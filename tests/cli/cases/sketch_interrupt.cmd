# Ended while it waits for its input, it leaves nothing behind.  (Ctrl-C is SIGINT, which a shell without a terminal lets
# its background jobs ignore: setsid and a terminal of its own are in the case `terminal`.)
for signal in TERM HUP; do
    mkfifo pipe
    flashsketch sketch -k 5 - -o Y.npy <pipe &
    process=$!
    exec 3>pipe
    printf 'half a file' >&3
    until ls | grep -q part; do sleep 0.02; done
    kill -$signal $process
    { wait $process; echo $?; } 2>/dev/null
    exec 3>&-
    rm pipe
done
ls
