"""The page of a profile and the drawing of a graph in Chromium, where one is installed."""

import re
import shutil
import subprocess

import cv2
import numpy as np
import pytest

from tests.core.cli.test_commands import run  # noqa: F401

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")

ASK = """
<script>
window.onerror = text => document.title = text;
addEventListener("load", () => {
  const page = document.documentElement;
  const broken = [...document.images].filter(i => !i.naturalWidth).length;
  const pale = [...document.querySelectorAll("td,th,p,h1,h2")]
    .filter(e => getComputedStyle(e).color == getComputedStyle(document.body).backgroundColor);
  document.title = `wider ${page.scrollWidth - page.clientWidth} broken ${broken}`
    + ` unseen ${pale.length} of ${document.querySelectorAll("td").length > 10}`;
});
</script>
"""


def browsed(tmp_path, page, *options):
    """What Chromium prints of a page; on a telephone's screen unless `options` say otherwise."""
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--user-data-dir={tmp_path / 'browser'}", "--window-size=500,900", *options),
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_pages_and_drawings_are_seen(run, tmp_path, scheme):  # noqa: F811
    colours = f"--blink-settings=preferredColorScheme={scheme}"
    run("profile", "cli_script.py:images", "--batches", "8", "--out", "mine.html")
    page = tmp_path / "mine.html"
    page.write_text(page.read_text() + ASK)
    told = re.search("<title>(.*)</title>", browsed(tmp_path, page, colours, "--dump-dom"))
    assert told is not None
    assert told[1] == "wider 0 broken 0 unseen 0 of true"

    run("graph", "cli_script.py:images", "-o", "graph.svg")
    shot = tmp_path / "shot.png"
    browsed(tmp_path, tmp_path / "graph.svg", colours, f"--screenshot={shot}")
    pixels = cv2.imread(str(shot)).reshape(-1, 3).astype(int)
    # Ground, stage, boxes and their words differ: it is not black on black.
    assert len(np.unique(pixels // 24, axis=0)) >= 5
    assert np.ptp(pixels.mean(axis=1)) > 150
    ground = np.median(pixels.mean(axis=1))
    assert (ground < 80) == (scheme == 0)
