flashsketch help help
