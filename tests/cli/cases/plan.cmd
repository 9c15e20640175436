# A sketch for a wanted error, and that the sketch which it names has it.
flashsketch plan -n 6 --error 0.3 | tee planned
awk 'BEGIN { for (i = 0; i < 3000; i++) for (j = 0; j < 6; j++) { x = (x * 16807 + 1) % 2147483647; printf "%d%s", x % 21, j < 5 ? "," : "\n" } }' >A.csv
options=$(sed -n 's/^next *flashsketch sketch \(.*\) A.npy.*/\1/p' planned)
flashsketch ose $options A.csv >measured 2>&1 && awk '/^error/ { sub(";", "", $6); print ($6 < 0.3) }' measured || grep -c OpenBLAS measured
flashsketch plan -n 6 --error 0.3 --json
flashsketch plan -n 6 -d 3000 --error 0.3 --probability 0.01 --coherent | head -n 1
flashsketch plan -n 100 -d 1000 --error 0.01; echo $?
flashsketch plan --error 0.3; echo $?
flashsketch plan -n 6; echo $?
flashsketch plan -n 6 --error 1.5; echo $?
flashsketch plan -n 6 --error 0.3 A.npy; echo $?
