flashsketch demo --data synthetic --rows 1024 -o nowhere/picture.svg >/dev/null; echo $?
flashsketch show -o nowhere/picture.png; echo $?
flashsketch show -o /dev/null; echo $?
ls
