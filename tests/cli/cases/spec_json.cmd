flashsketch spec -d 1000 -k 150 --kappa 2 --seed 18446744073709551615 -n 10 --json
flashsketch spec -d 1000 -k 10 --family srht --json
