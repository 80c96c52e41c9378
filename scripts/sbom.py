#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the software bill of materials of a package of mx as SPDX 2.3 in JSON: mx, the libraries that it
is linked with, and those whose headers are compiled into it, with versions and licences.

The facts are those of the build: Ninja's record of the headers of each object, the linker's map (of a
static program) or the needed libraries (of a shared one), the packages that dpkg says these files are
from, and their copyright files. Nothing is listed by hand but how Debian's short names of licences are
spelled in SPDX. --notices FOLDER copies the copyright files, which a program that has the libraries in
it must come with."""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Debian's names of licences that SPDX spells differently or alike. Any other becomes a LicenseRef with
# the package's copyright file as its text.
LICENSES = {"Apache-2.0": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause",
            "BSD-3-Clause": "BSD-3-Clause", "BSD-3-Clause~Google": "BSD-3-Clause", "BSL-1.0": "BSL-1.0", "Expat": "MIT", "MIT": "MIT", "Zlib": "Zlib"}
# Declarations of the system's interface: nothing of them is in a program.
INTERFACES = {"linux"}
FIELDS = ["Package", "source:Package", "source:Version", "Homepage", "Maintainer"]


def output(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def headers(build):
    """The headers outside the sources that the objects of mx were compiled with."""
    objects = {line for line in output("ninja", "-C", build, "-t", "inputs", "mx").splitlines() if line.endswith((".o", ".gch"))}
    found = set()
    ours = False
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if line.startswith(" "):
            path = line.strip()
            if ours and path.startswith("/usr/"):
                found.add(os.path.realpath(path))
        elif line:
            ours = line.split(":")[0] in objects
    return found


def archives(map_text):
    """The archives with included members according to a linker's map."""
    part = map_text.split("\n\n", 2)[1] if map_text.startswith("Archive member included") else ""
    return {os.path.realpath(path) for path in re.findall(r"^(/.*\.a)\(", part, re.MULTILINE)}


def shared_libraries(program):
    """The paths of the libraries that a program names as needed."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program)))
    found = re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", program), re.MULTILINE)
    return {os.path.realpath(path) for name, path in found if name in needed}


def owners(paths):
    """The packages of files; Debian's /lib and /usr/lib are one folder, of which dpkg knows one name."""
    names = sorted(paths | {path[len("/usr"):] for path in paths if path.startswith("/usr/lib")})
    if not names:
        return set()
    run = subprocess.run(["dpkg-query", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    packages = {}
    for line in run.stdout.splitlines():
        package, path = line.split(": ", 1)
        packages[os.path.realpath(path)] = package.split(", ")[0]
    lost = paths - set(packages)
    if lost:
        sys.exit(f"sbom.py: {sorted(lost)[0]} is of no package: what version it has is not known")
    return set(packages.values())


def component(package):
    """A package's source according to dpkg, and its licence."""
    format_text = "\\t".join("${%s}" % field for field in FIELDS)
    values = output("dpkg-query", "-W", "-f", format_text, package).split("\t")
    name, source, version, homepage, maintainer = values
    text = Path("/usr/share/doc", name, "copyright").read_text(encoding="utf-8", errors="replace")
    return {"name": source, "version": version, "homepage": homepage or "NOASSERTION",
            "maintainer": maintainer, "copyright": text, **licence(source, text)}


def licence(name, text):
    """The SPDX licence of a package by its copyright file, and what the file says of parts."""
    stanzas = [(re.search(r"^Files:\s*(.*)", stanza, re.MULTILINE), re.search(r"^License:[ \t]*(.*)", stanza, re.MULTILINE))
               for stanza in re.split(r"\n\s*\n", text)]
    named = [(files[1].strip(), short[1].strip()) for files, short in stanzas if files and short and short[1].strip()]
    whole = next((short for files, short in named if files == "*"), None)
    parts = sorted({short for files, short in named if files != "*" and not files.startswith("debian/") and short != whole})
    reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
    return {"licence": LICENSES.get(whole, reference), "parts": parts}


def components(packages):
    """One of each source, ordered by name."""
    found = {}
    for package in sorted(packages):
        one = component(package)
        if one["name"] not in INTERFACES:
            found.setdefault(one["name"], one)
    return [found[name] for name in sorted(found)]


def linked(build, static):
    """The packages that mx is linked with: of archives of our own those of the shared libraries."""
    if not static:
        return owners(shared_libraries(f"{build}/mx"))
    paths = archives(Path(build, "mx.map").read_text())
    made = {path for path in paths if Path(path + ".package").exists()}
    inside = str(Path(build).resolve()) + "/"
    return owners({path for path in paths - made if not path.startswith(inside)}) | {
        Path(path + ".package").read_text().strip() for path in made}


def spdx_package(one):
    entry = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", one["name"]),
        "name": one["name"],
        "versionInfo": one["version"],
        "supplier": "Organization: Debian" if "debian" in one["maintainer"].lower() else
                    "Person: " + re.sub(r"\s*<(.*)>", r" (\1)", one["maintainer"]),
        "downloadLocation": "NOASSERTION",
        "homepage": one["homepage"],
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": one["licence"],
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{one['name']}@{one['version'].replace('+', '%2B')}?arch=source"}],
    }
    if one["parts"]:
        entry["licenseComments"] = "By the copyright file of Debian's package, parts of the source are under: " + ", ".join(
            one["parts"])
    return entry


def document(artifact, version, seconds, libraries, compiled, static):
    """The SPDX document of a package file: LIBRARIES linked, COMPILED from headers alone."""
    content = Path(artifact).read_bytes()
    name = Path(artifact).name
    sha256 = hashlib.sha256(content).hexdigest()
    names = {one["name"] for one in libraries}
    rest = [one for one in compiled if one["name"] not in names]
    both = sorted(libraries + rest, key=lambda one: one["name"])
    own = {"SPDXID": "SPDXRef-mx", "name": "mx", "versionInfo": version, "packageFileName": name,
           "supplier": "Organization: The mx developers", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
           "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}], "licenseConcluded": "NOASSERTION",
           "licenseDeclared": "Apache-2.0", "copyrightText": "2026 The mx developers",
           "primaryPackagePurpose": "APPLICATION"}
    packages = [spdx_package(one) for one in both]
    kinds = [("STATIC_LINK" if static else "DYNAMIC_LINK") if one["name"] in names else "CONTAINS" for one in both]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{sha256}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                         "creators": ["Tool: mx-scripts-sbom.py", "Organization: The mx developers"]},
        "packages": [own, *packages],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-mx"},
            *({"spdxElementId": "SPDXRef-mx", "relationshipType": kind, "relatedSpdxElement": entry["SPDXID"]}
              for kind, entry in zip(kinds, packages))],
        "hasExtractedLicensingInfos": [
            {"licenseId": one["licence"], "name": f"licences of {one['name']}", "extractedText": one["copyright"]}
            for one in both if one["licence"].startswith("LicenseRef-")],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="folder in which Ninja built mx")
    parser.add_argument("--artifact", metavar="FILE", help="package to describe; SPDX on standard output")
    parser.add_argument("--notices", metavar="FOLDER", help="copy the copyright files to FOLDER")
    words = parser.parse_args()
    cache = dict(re.findall(r"^([A-Za-z_]+):\w+=(.*)$", Path(words.build, "CMakeCache.txt").read_text(), re.MULTILINE))
    if cache.get("CMAKE_CUDA_COMPILER", "").startswith("/"):
        # nvcc links its runtime statically, and the toolkit is seldom of a Debian package.
        sys.exit(f"sbom.py: {words.build} links the CUDA runtime, whose version dpkg does not know: configure with -DMX_CUDA=off")
    static = bool(cache.get("MX_STATIC"))
    libraries = components(linked(words.build, static))
    compiled = components(owners(headers(words.build)))
    if words.notices:
        shutil.rmtree(words.notices, ignore_errors=True)
        for one in compiled + libraries:
            Path(words.notices).mkdir(parents=True, exist_ok=True)
            Path(words.notices, one["name"]).write_text(one["copyright"])
    if words.artifact:
        seconds = int(os.environ["SOURCE_DATE_EPOCH"])
        made = document(words.artifact, cache["CMAKE_PROJECT_VERSION"], seconds, libraries, compiled, static)
        json.dump(made, sys.stdout, indent=1, sort_keys=True)
        print()


if __name__ == "__main__":
    main()
