flashsketch --help
