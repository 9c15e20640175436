flashsketch check --help
