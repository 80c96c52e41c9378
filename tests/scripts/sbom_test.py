#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom.py: licences from copyright files, archives from a linker's map, and documents that keep
the rules of SPDX 2.3. SBOM=FILE checks a document that exists, too."""

import json
import os
import re
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from script import load

sbom = load("sbom.py")

MAP = """Archive member included to satisfy reference by file (symbol)

/usr/lib/x86_64-linux-gnu/libz.a(inflate.o)
                              main.o (inflate)
/opt/made/libfmt.a(format.cc.o)
                              main.o (fmt)

Discarded input sections

 .text          0x0        0x0 /usr/lib/x86_64-linux-gnu/libunused.a(never.o)
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2020 A
License: Expat

Files: src/old/*
Copyright: 2001 B
License: LGPL-2.1+

Files: debian/*
Copyright: 2021 C
License: GPL-3+

License: Expat
 Permission is hereby granted
"""
ID = r"SPDXRef-[A-Za-z0-9.-]+"
LINKS = {"DESCRIBES", "CONTAINS", "STATIC_LINK", "DYNAMIC_LINK"}


def broken_rules(document):
    """What of SPDX 2.3's JSON schema, and of its rules for identifiers, a document breaks."""
    wrong = []

    def rule(holds, text):
        if not holds:
            wrong.append(text)

    for member in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"):
        rule(member in document, f"no {member}")
    rule(document.get("spdxVersion") == "SPDX-2.3", "spdxVersion")
    rule(document.get("dataLicense") == "CC0-1.0", "dataLicense")
    rule(document.get("SPDXID") == "SPDXRef-DOCUMENT", "SPDXID of the document")
    rule(re.fullmatch(r"https?://[^#\s]+", document.get("documentNamespace", "")), "documentNamespace")
    creation = document.get("creationInfo", {})
    rule(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", creation.get("created", "")), "created")
    rule(creation.get("creators") and all(re.match(r"(Tool|Organization|Person): \S", one)
                                          for one in creation["creators"]), "creators")
    texts = {one["licenseId"]: one["extractedText"] for one in document.get("hasExtractedLicensingInfos", [])}
    rule(all(texts.values()), "a licence without text")
    ids = ["SPDXRef-DOCUMENT"]
    for package in document["packages"]:
        where = package.get("name", "?")
        ids.append(package.get("SPDXID", ""))
        rule(re.fullmatch(ID, ids[-1]), f"{where}: SPDXID")
        rule(package.get("name") and package.get("versionInfo"), f"{where}: name and version")
        rule(package.get("downloadLocation"), f"{where}: downloadLocation")
        rule(package.get("filesAnalyzed") is False, f"{where}: filesAnalyzed")
        rule(re.match(r"(Person|Organization): \S|NOASSERTION$", package.get("supplier", "")), f"{where}: supplier")
        licence = package.get("licenseDeclared", "")
        rule(licence in set(sbom.LICENSES.values()) | set(texts), f"{where}: licence {licence}")
        for one in package.get("checksums", []):
            rule(one["algorithm"] == "SHA256" and re.fullmatch(r"[0-9a-f]{64}", one["checksumValue"]), f"{where}: checksum")
        for one in package.get("externalRefs", []):
            rule(re.fullmatch(r"pkg:deb/debian/[a-z0-9.+-]+@[^\s+]+", one["referenceLocator"]), f"{where}: purl")
    rule(len(set(ids)) == len(ids), "an SPDXID twice")
    for one in document["relationships"]:
        rule(one["relationshipType"] in LINKS, one["relationshipType"])
        rule(one["spdxElementId"] in ids and one["relatedSpdxElement"] in ids, f"{one['relatedSpdxElement']} is nowhere")
    related = {one["relatedSpdxElement"] for one in document["relationships"]}
    rule(set(ids) - related == {"SPDXRef-DOCUMENT"}, "a package without relationship")
    return wrong


def library(name, text=COPYRIGHT):
    return {"name": name, "version": "1:2.0+ds-1", "homepage": "NOASSERTION", "maintainer": "A B <a@b.org>",
            "copyright": text, **sbom.licence(name, text)}


class Sbom(unittest.TestCase):
    def made(self):
        with tempfile.TemporaryDirectory() as folder:
            artifact = Path(folder, "mx_1.0_amd64.deb")
            artifact.write_bytes(b"package")
            return sbom.document(artifact, "1.0", 1700000000, [library("zlib"), library("gcc-12", "prose")],
                                 [library("zlib"), library("cli11")], True)

    def test_cuda_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "CMakeCache.txt").write_text("CMAKE_CUDA_COMPILER:FILEPATH=/usr/local/cuda/bin/nvcc\n")
            with unittest.mock.patch("sys.argv", ["sbom.py", folder]), self.assertRaises(SystemExit) as refused:
                sbom.main()
            self.assertIn("MX_CUDA=off", str(refused.exception.code))

    def test_licences(self):
        self.assertEqual(sbom.licence("x", COPYRIGHT), {"licence": "MIT", "parts": ["LGPL-2.1+"]})
        self.assertEqual(sbom.licence("x+y", "prose"), {"licence": "LicenseRef-x-y", "parts": []})

    def test_archives(self):
        self.assertEqual({Path(path).name for path in sbom.archives(MAP)}, {"libz.a", "libfmt.a"})
        self.assertEqual(sbom.archives("no map"), set())

    def test_document(self):
        made = self.made()
        self.assertEqual(broken_rules(made), [])
        kinds = {one["relatedSpdxElement"]: one["relationshipType"] for one in made["relationships"]}
        self.assertEqual(kinds, {"SPDXRef-mx": "DESCRIBES", "SPDXRef-zlib": "STATIC_LINK",
                                 "SPDXRef-gcc-12": "STATIC_LINK", "SPDXRef-cli11": "CONTAINS"})
        self.assertEqual(made["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        self.assertEqual([one["licenseId"] for one in made["hasExtractedLicensingInfos"]], ["LicenseRef-gcc-12"])

    def test_rules_see_mistakes(self):
        for change in (lambda d: d.pop("dataLicense"), lambda d: d["packages"][1].pop("versionInfo"),
                       lambda d: d["packages"][1].update(licenseDeclared="Expat"),
                       lambda d: d["relationships"].pop(), lambda d: d["packages"][1].update(SPDXID="SPDXRef-a+b"),
                       lambda d: d["hasExtractedLicensingInfos"].clear()):
            made = self.made()
            change(made)
            self.assertNotEqual(broken_rules(made), [])

    @unittest.skipUnless("SBOM" in os.environ, "no SBOM=FILE")
    def test_file(self):
        document = json.loads(Path(os.environ["SBOM"]).read_text())
        self.assertEqual(broken_rules(document), [])
        names = {one["name"] for one in document["packages"]}
        self.assertLessEqual({"mx", "hdf5", "libzip", "openssl", "zlib", "fmtlib", "highway", "nlohmann-json3", "cli11",
                              "glibc"}, names)


if __name__ == "__main__":
    unittest.main()
