# The figure of the paper, then other sketches; one that is not legal; what is too large.
flashsketch show && check_picture flashsketch.png &&
flashsketch show -d 100 -k 37 -M 5 --kappa 2 -s 3 --beside rows --seed 0xFFFFFFFFFFFFFFFF -o odd.png &&
check_picture odd.png || exit
for family in sjlt blockrow srht gaussian; do
    flashsketch show --family $family -d 300 -k 60 -o $family.png && check_picture $family.png || exit
done
flashsketch show --shuffle lines -M 0 --kappa 0 -s 0 -d 100000 -k 7 -o lines.png && check_picture lines.png || exit
flashsketch show --kappa 17; echo $?
flashsketch show --family gaussian -d 1000000; echo $?
ls
