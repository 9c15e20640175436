flashsketch spec --help
