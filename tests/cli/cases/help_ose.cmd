flashsketch ose --help
