"""Takes the pictures of the coverage page that the documents show: `make images`. Needs Chromium and its driver.

python docs/images/take.py coverage_report/index.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from selenium import webdriver

HERE = Path(__file__).parent
PICTURES = {
    "coverage_desktop.png": (1280, 800, 1, "light", ""),
    "coverage_rows.png": (1280, 640, 1, "dark", "#q=avg_pool2d&op=avg_pool2d"),
    "coverage_phone.png": (390, 760, 2, "light", "#q=pool&dtype=float32"),
}
"""Width, height, device pixels for each, colour scheme, what is asked."""


def main(page: Path) -> None:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    for name, (width, height, scale, scheme, asked) in PICTURES.items():
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": scale > 1}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        driver.get("about:blank")
        driver.get(page.resolve().as_uri() + asked)
        driver.save_screenshot(str(HERE / name))
    driver.quit()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
