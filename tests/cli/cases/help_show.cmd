flashsketch show --help
