flashsketch grass --help
