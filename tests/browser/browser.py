"""The browser of the tests: any on this machine, else one is installed where possible.

python -m tests.browser.browser
"""

import os
import shutil
import subprocess
import sys

from benchmarks.served import find_browser


def install_browser() -> None:
    """Installs one by Playwright's download, or as root by Debian's package manager."""
    attempts = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        attempts.append(["sh", "-c", "apt-get update -qq && apt-get install -y -qq chromium"])
    for command in attempts:
        print(f"no browser found; trying: {' '.join(command)}", flush=True)
        completed = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if completed.returncode == 0 and find_browser():
            return


def main() -> None:
    """Finds or installs a browser; without one, fails under CI, else prints what is skipped."""
    if find_browser() is None:
        install_browser()
    browser = find_browser()
    if browser:
        print(f"browser tests use {browser}")
        return
    print("*" * 79)
    print("NO BROWSER: the tests in tests/browser are SKIPPED. Install Chromium or Google Chrome,")
    print("or run `.venv/bin/playwright install chromium`, and run `make test` again.")
    print("*" * 79)
    if os.environ.get("CI"):
        sys.exit("under CI a missing browser is a failure")


if __name__ == "__main__":
    main()
