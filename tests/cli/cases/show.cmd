# The figure of the paper, then other sketches, of which the library chooses what is not given; one that is not legal;
# what is too large; pictures that no file of such a name can hold.
flashsketch show && check_picture flashsketch.png &&
flashsketch show -d 100 -k 37 -M 5 --kappa 2 -s 3 --shuffle none --beside rows --seed 0xFFFFFFFFFFFFFFFF -o odd.png &&
check_picture odd.png || exit
for family in sjlt blockrow srht gaussian; do
    flashsketch show --family $family -d 300 -k 60 -o $family.png && check_picture $family.png || exit
done
flashsketch show -d 100 -k 10 -o chosen.png && check_picture chosen.png || exit
flashsketch show --shuffle groups -d 100000 -k 7 -o lines.png && check_picture lines.png || exit
flashsketch show --kappa 17; echo $?
flashsketch show --family gaussian -d 1000000; echo $?
for name in x.jpg png .svg x.png.gz -; do flashsketch show -o $name; echo $?; done
flashsketch demo --data synthetic -o x.png; echo $?
flashsketch grass query -o x.svg folder 1; echo $?
ls
