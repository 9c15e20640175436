flashsketch demo --data synthetic --rows 1024 -o nowhere/picture.svg >/dev/null; echo $?
flashsketch show -o nowhere/picture.png; echo $?
mkdir folder.png
flashsketch show -o folder.png; echo $?
ls
