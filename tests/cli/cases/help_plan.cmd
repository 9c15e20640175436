flashsketch plan --help
