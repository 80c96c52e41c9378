# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import pytest


@pytest.fixture(scope="session")
def mx():
    """The command of the same sources; tests that compare with it are skipped without."""
    path = os.environ.get("MX") or shutil.which("mx")
    if not path:
        pytest.skip("no mx command: set MX")
    return path
