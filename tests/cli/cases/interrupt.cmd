# A program that is ended while it works leaves nothing behind.
flashsketch demo --data synthetic --rows 60000 >/dev/null &
until ls | grep -q part; do sleep 0.05; done
kill -TERM $!
{ wait $!; echo $?; } 2>/dev/null
ls
