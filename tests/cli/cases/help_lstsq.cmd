flashsketch lstsq --help
