flashsketch solve --help
