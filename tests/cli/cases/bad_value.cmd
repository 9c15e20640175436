flashsketch demo --rows 12; echo $?
flashsketch demo --rows 1e5; echo $?
flashsketch demo --rows; echo $?
flashsketch demo --seed -1; echo $?
flashsketch show -k; echo $?
flashsketch show --shuffle cards; echo $?
flashsketch show --family haar; echo $?
flashsketch show -d 99999999999999999999
