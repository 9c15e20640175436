flashsketch version --help
