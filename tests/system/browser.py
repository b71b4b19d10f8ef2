"""A headless Chromium (Debian's, driven by selenium) that opens pages from files."""
import json
import os
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from machine import PATIENCE

NARROW = 500  # narrower screens are mobile ones


class Browser:
    """A browser; screen() sets the size and `light` or `dark`."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu",
                         "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs",
                               {"browser": "ALL", "performance": "ALL"})
        # Chromium leaves files in TMPDIR.
        self.folder = tempfile.TemporaryDirectory(prefix="strobe-browser-",
                                                  ignore_cleanup_errors=True)
        self.driver = webdriver.Chrome(options=options, service=Service(
            "/usr/bin/chromedriver",
            env={**os.environ, "TMPDIR": self.folder.name}))
        self.run = self.driver.execute_script

    def screen(self, width=1280, height=900, scheme="light"):
        cdp = self.driver.execute_cdp_cmd
        cdp("Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1,
             "mobile": width < NARROW})
        cdp("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def open(self, path):
        """Opens and waits for a page: on a busy host get() may return earlier."""
        address = f"file://{path}"
        self.driver.get(address)
        self.wait(lambda: self.run(
            "return document.readyState === 'complete' && location.href"
        ) == address)
        self.settle()

    def settle(self):
        """Waits until the page is idle (no aria-busy)."""
        self.wait(lambda: self.run(
            "return document.querySelector('[aria-busy=true]') === null"))

    def find(self, id_):
        self.settle()
        return self.driver.find_element("id", id_)

    def wait(self, condition):
        """Waits until condition() is true; returns its value."""
        return WebDriverWait(self.driver, PATIENCE, 0.05).until(
            lambda _: condition())

    def press(self, *keys):
        actions = webdriver.ActionChains(self.driver, duration=0)
        actions.send_keys(*keys).perform()
        self.settle()

    def complaints(self):
        """The console's messages since the last call."""
        return self.driver.get_log("browser")

    def requests(self):
        """The URLs requested since the last call."""
        messages = (json.loads(entry["message"])["message"]
                    for entry in self.driver.get_log("performance"))
        return [m["params"]["request"]["url"] for m in messages
                if m["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.driver.quit()
        self.folder.cleanup()
