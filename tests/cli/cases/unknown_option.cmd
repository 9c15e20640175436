flashsketch demo --frobnicate; echo $?
flashsketch show -z; echo $?
flashsketch --frobnicate; echo $?
flashsketch version please
