"""Another distribution on pip's index has this package's import name, `flashsketch`, and overwrites its files."""

import pathlib
import warnings

REMEDY = "run `pip uninstall -y flashsketch` and then `pip install --force-reinstall --no-deps libflashsketch`"


def look(folder: pathlib.Path) -> None:
    """Warns where the placeholder is installed in the folder that this package lies in."""
    if any(folder.glob("flashsketch-*.dist-info")):
        warnings.warn(
            f"the distribution 'flashsketch' is installed beside libflashsketch and shares its files: {REMEDY}",
            RuntimeWarning,
            stacklevel=3,
        )
