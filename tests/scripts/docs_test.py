#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead somewhere, every page is in the site, and the site builds."""

import re
import shutil
import subprocess
import tempfile
import unittest

from script import ROOT

NOT_OURS = ("build/", "datasets/vectors/", "tests/", "apps/")  # those of apps/ become docs/


def pages():
    return sorted(path for path in ROOT.rglob("*.md")
                  if not path.relative_to(ROOT).as_posix().startswith(NOT_OURS))


def prose(text):
    """Without fenced blocks and code, whose brackets are no links and whose # no headings."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("[", " ").replace("(", " "), text)


def anchors(path):
    """Of headings, as GitHub and MkDocs spell them."""
    found = set()
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        github = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found |= {github, re.sub(r"-+", "-", github).strip("-")}
    return found


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        dead, links = [], 0
        for page in pages():
            for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text())):
                if re.match(r"[a-z]+:", target):
                    continue
                links += 1
                name, _, anchor = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
                    dead.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(dead, [])
        self.assertGreater(links, 100)

    def test_every_page_is_in_the_site(self):
        nav = re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
        there = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
        self.assertEqual(sorted(nav), sorted(there))

    def test_tests_that_pages_name_are_there(self):
        """FILE::TEST of the Python package."""
        named = {n for page in pages() for n in re.findall(r"`(test_\w+\.py::test_\w+)`", page.read_text())}
        found = {f"{path.name}::{test}" for path in (ROOT / "python/tests").glob("test_*.py")
                 for test in re.findall(r"^def (test_\w+)", path.read_text(), re.M)}
        self.assertGreater(len(named), 20)
        self.assertEqual(sorted(named - found), [])

    def test_claims_about_chips_have_evidence(self):
        """Until somebody records more, evidence.md knows of mma.sync on two chips; change both."""
        rows = re.findall(r"^\| \*\*([\w.]+)\*\* \| ([^|]*) \|.* \| (recorded[^|]*) \|", (
            ROOT / "docs/design/gemm.md").read_text(), re.M)
        self.assertGreater(len(rows), 8)
        for model, instruction, _ in rows:
            self.assertEqual((model.split(".")[0] in ("sm90", "sm100"), instruction), (True, "mma.sync"), model)
        chips = r"(a |an |the |NVIDIA )*(B200|B300|GB200|H100|H200|RTX|MI3\d\dX)\b"
        claim = re.compile(r"\b(verified|validated|confirmed|tested|measured|was run|has run|have run|ran) on " + chips)
        denied = re.compile(r"\b(not|nothing|never|nobody|no|none)\b")
        for page in pages():
            for sentence in re.split(r"(?<=[.;:|])\s", " ".join(prose(page.read_text()).split())):
                if claim.search(sentence) and not denied.search(sentence.lower()):
                    self.fail(f"{page.relative_to(ROOT)} claims: {sentence}")

    def test_the_site_builds(self):
        if not shutil.which("mkdocs"):
            self.skipTest("no mkdocs (scripts/install-dependencies.sh site)")
        with tempfile.TemporaryDirectory() as site:
            made = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--site-dir", site],
                                  cwd=ROOT, text=True, capture_output=True)
            self.assertEqual(made.returncode, 0, made.stderr)


if __name__ == "__main__":
    unittest.main()
