"""finish.py - makes a wheel complete and the same bytes each time, and refuses one that is wrong.

usage: finish.py WHEEL FOLDER MEGABYTES LICENCES [COMPONENT...]

Adds the licence texts of what the wheel bundles, and a list of it (an SBOM in CycloneDX's JSON, where PEP 770 wants
it); writes the wheel into FOLDER with its files sorted and dated SOURCE_DATE_EPOCH.  The wheel may have MEGABYTES (10^6
bytes) at most and must not contain the path of this checkout.

LICENCES is a folder with a file for each component: libgomp.txt, ...  A COMPONENT is NAME=VERSION=LICENCE=URL, URL a
package URL.  Every shared library in the wheel that is not ours must have one, by the beginning of its file name.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid
from typing import Any, Dict, List

ROOT = pathlib.Path(__file__).resolve().parents[2]


def refuse(what: str) -> None:
    sys.exit(f"finish.py: {what}")


def component(text: str, files: List[pathlib.Path], top: pathlib.Path) -> Dict[str, Any]:
    """What CycloneDX calls a component: a library that is inside."""
    name, version, licence, url = text.split("=", 3)
    mine = [file for file in files if file.name.startswith(name)]
    found: Dict[str, Any] = {
        "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
        "licenses": [{"expression": licence}],
    }
    if mine:
        digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in mine]
        found["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in digests]
        found["evidence"] = {"occurrences": [{"location": str(file.relative_to(top))} for file in mine]}
    return found


def main() -> None:
    wheel, folder, limit, licences = (pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3]),
                                      pathlib.Path(sys.argv[4]))
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", work, str(wheel)], check=True,
                       stdout=subprocess.DEVNULL)
        top = next(pathlib.Path(work).iterdir())
        info = next(top.glob("*.dist-info"))
        grafted = sorted(file for file in top.rglob("*.so*") if not file.name.startswith("libflashsketch"))
        for file in top.rglob("*"):
            if file.is_file() and str(ROOT).encode() in file.read_bytes():
                refuse(f"{file.relative_to(top)} of {wheel.name} contains the path {ROOT}")
        for file in grafted:
            if not any(file.name.startswith(text.split("=")[0]) for text in sys.argv[5:]):
                refuse(f"{wheel.name} bundles {file.name}, whose licence and origin scripts/wheels.sh does not give")

        components = [component(text, grafted, top) for text in sys.argv[5:]]
        for part in components:
            text = (licences / f"{part['name']}.txt").read_text()
            (info / "licenses").mkdir(exist_ok=True)
            (info / "licenses" / f"{part['name']}.txt").write_text(text)
        name, version = wheel.name.split("-")[:2]
        url = f"pkg:pypi/{name.replace('_', '-')}@{version}"
        (info / "sboms" / "auditwheel.cdx.json").unlink(missing_ok=True)  # ours says the same and more
        (info / "sboms").mkdir(exist_ok=True)
        (info / "sboms" / f"{name}.cdx.json").write_text(json.dumps({
            "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url + json.dumps(components))}",
            "metadata": {"component": {
                "type": "library", "bom-ref": url, "name": name.replace("_", "-"), "version": version, "purl": url,
                "licenses": [{"expression": "BSD-3-Clause"}]}},
            "components": components,
            "dependencies": [{"ref": url, "dependsOn": [part["purl"] for part in components]}],
        }, indent=1) + "\n")

        for path in top.rglob("*"):  # modes are written into the wheel: one for programs, one for everything else
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        made = folder / wheel.name
        made.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", str(folder), str(top)], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ})
    size = made.stat().st_size / 1e6
    print(f"{made.name}: {size:.2f} MB")
    if size > limit:
        refuse(f"{made.name} has {size:.1f} MB, {limit:g} is the limit")


if __name__ == "__main__":
    main()
