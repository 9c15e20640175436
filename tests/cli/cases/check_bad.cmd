flashsketch check everything; echo $?
flashsketch check --fast; echo $?
