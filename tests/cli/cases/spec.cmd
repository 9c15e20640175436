flashsketch spec -d 10000 -k 400 -n 16
flashsketch spec -d 4096 -k 1024 -M 32 --kappa 2 -s 2 --shuffle none --seed 18446744073709551615
flashsketch spec -d 100 -k 30 -M 3 --kappa 2 --family blockrow
flashsketch spec -d 281474976710656 -k 64 --family sjlt
flashsketch spec -d 1000 -k 10 --family gaussian
flashsketch spec -d 100000 -k 300 -n 256 --quality high
flashsketch spec -d 100000 -k 4096 -n 256 --quality gaussian --shuffle groups | tail -n 6
flashsketch spec -d 100000 -k 512 -n 64 --quality high -s 4 --shuffle none | grep -v '^  '
flashsketch spec -d 1000 -k 100 -n 10 --family srht | tail -n 5
