#!/usr/bin/env bash
# Makes sure that the browser tests have a Chromium: the system's, else Playwright's, else the
# package manager's. Usage: tests/browser.sh PYTHON
set -u
python="${1:-python3}"

for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done

have_playwright() {
    "$python" - <<'PY'
import os, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    path = p.chromium.executable_path
    if not os.path.exists(path):
        sys.exit(1)
    p.chromium.launch(args=["--no-sandbox"]).close()
PY
}
have_playwright 2>/dev/null && exit 0
echo "No Chromium found; asking Playwright for one."
if timeout 300 "$python" -m playwright install chromium && have_playwright 2>/dev/null; then
    exit 0
fi

sudo=""
if [ "$(id -u)" != 0 ]; then sudo="sudo -n"; fi
echo "Playwright brought none that starts; asking the package manager."
if command -v apt-get >/dev/null && $sudo apt-get update -qq &&
    { $sudo apt-get install -y -qq chromium-headless-shell || $sudo apt-get install -y -qq chromium; }; then
    exit 0
fi
echo "No Chromium could be found or installed; the browser tests need one." >&2
exit 1
