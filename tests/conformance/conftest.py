from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import pairs`

from pairs import Opsctl


@pytest.fixture
def opsctl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Opsctl:
    """The command line, in this process."""
    return Opsctl(capsys, monkeypatch)
