flashsketch frobnicate; echo $?
flashsketch skecth; echo $?
flashsketch co; echo $?
flashsketch help slove; echo $?
flashsketch help frobnicate; echo $?
flashsketch help show info
