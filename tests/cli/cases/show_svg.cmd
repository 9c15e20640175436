# The same picture as SVG; one colour for each permutation.
flashsketch show -d 100 -k 60 -M 12 --kappa 11 -s 2 -o odd.svg && check_picture odd.svg &&
echo "$(grep -c '<path' odd.svg) colours"
flashsketch show --family gaussian -d 3000 -k 1000 -o large.svg; echo $?
ls
