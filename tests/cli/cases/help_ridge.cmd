flashsketch ridge --help
