flashsketch version --json
