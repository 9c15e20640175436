flashsketch leverage --help
