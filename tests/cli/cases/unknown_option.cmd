flashsketch demo --frobnicate; echo $?
flashsketch show -z; echo $?
flashsketch --frobnicate; echo $?
# A long option is its whole name.
flashsketch sketch --k 4; echo $?
flashsketch sketch --memor 4; echo $?
flashsketch sketch --memor; echo $?
flashsketch sketch --s; echo $?
flashsketch sketch --mmeory=4; echo $?
flashsketch sketch --resume=4; echo $?
flashsketch spec -m 3; echo $?
flashsketch spec -json; echo $?
flashsketch sketch --quiet -xq; echo $?
flashsketch sketch -qx; echo $?
# Options stand before, between and after others, in one word or two, up to "--".
flashsketch spec -d100 -k 10 --seed=3 --json | grep -e '"d"' -e '"k"' -e seed
flashsketch sketch A -k 5 --quiet B -- -o; echo $?
flashsketch info -- -o; echo $?
flashsketch version please
