flashsketch sketch --help
