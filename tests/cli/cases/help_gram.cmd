flashsketch gram --help
