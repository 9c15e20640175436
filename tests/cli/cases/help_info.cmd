flashsketch info --help
