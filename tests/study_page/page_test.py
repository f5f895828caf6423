"""Opens the page of a study in a real browser and checks the document after the page's script ran."""
import html.parser
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SAMPLE = os.environ["STUDY_PAGE_SAMPLE"]
SECONDS = 120
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, dict(attributes), parent, []

    def all(self, tag, name=None):
        """Yields every element below this one with this tag and class, in document order."""
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag and (name is None or name in child.attributes.get("class", "").split()):
                    yield child
                yield from child.all(tag, name)

    def text(self):
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


class Document(html.parser.HTMLParser):
    """The element tree of a document that a browser printed."""

    def __init__(self, text):
        super().__init__()
        self.root = self.at = Element("", {}, None)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = Element(tag, attributes, self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_endtag(self, tag):
        if tag == self.at.tag:
            self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)


class StudyPage(unittest.TestCase):
    def setUp(self):
        self.browser = shutil.which("chromium")
        self.assertTrue(self.browser, "no chromium: ./dev test installs it")
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def browse(self, page, *words):
        """Returns the document that the browser printed. An error of the page's script fails the test."""
        done = subprocess.run(
            [self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--enable-logging=stderr", "--virtual-time-budget=5000", f"--user-data-dir={self.folder / 'profile'}", *words,
             page.as_uri()], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("CONSOLE", done.stderr)
        return done.stdout

    def page(self, kind):
        page = self.folder / f"{kind}.html"
        subprocess.run([SAMPLE, kind, str(page)], check=True, timeout=SECONDS)
        return page

    def open(self, kind):
        root = Document(self.browse(self.page(kind), "--dump-dom")).root
        main = [element for element in root.all("main") if element.attributes.get("id") == "page"]
        self.assertEqual(len(main), 1)
        return root, main[0]

    def titles(self, main):
        return [heading.text() for heading in main.all("h2")]

    def rows(self, main):
        table = next(main.all("table"))
        header, *rows = [[cell.text() for kind in ("th", "td") for cell in row.all(kind)] for row in table.all("tr")]
        return header, rows

    def test_the_script_draws_every_section_and_every_trial(self):
        root, main = self.open("plain")
        self.assertEqual(next(root.all("title")).text(), "Study: val/loss")
        self.assertEqual(next(main.all("h1")).text(), "Search: minimise val/loss")
        self.assertEqual(self.titles(main), ["Best so far", "Importance", "Parallel coordinates", "Slices", "Learning curves",
                                             "Trials", "Summary"])
        tiles = {next(tile.all("span")).text(): next(tile.all("b")).text() for tile in main.all("div", "tile")}
        self.assertEqual(tiles["trials started"], "40 of 50")
        self.assertEqual(tiles["complete"], "36")
        self.assertEqual([tiles["failed"], tiles["running"], tiles["pruned or paused"]], ["1", "1", "2"])
        header, rows = self.rows(main)
        self.assertEqual(header, ["trial", "state", "val/loss", "optimizer.lr", "optimizer.name", "optimizer.momentum", "by", "why"])
        self.assertEqual(sorted(int(row[0]) for row in rows), list(range(40)))
        losses = [float(row[2]) for row in rows if row[2] != "–"]
        self.assertEqual(losses, sorted(losses), "the table begins with the best trial")
        self.assertIn(f"best val/loss, trial {rows[0][0]}", tiles)
        by_trial = {int(row[0]): row for row in rows}
        self.assertEqual(by_trial[7][1:3], ["failed", "–"])
        self.assertEqual([by_trial[trial][1] for trial in (8, 9, 10)], ["pruned", "paused", "running"])
        self.assertEqual(by_trial[12][3:6], ["0.01", "sgd", "–"])
        lines = [line for line in main.all("polyline", "path")]
        self.assertGreater(len(lines), 60, "parallel coordinates and learning curves")
        for svg in main.all("svg"):
            self.assertNotIn("NaN", "".join(str(element.attributes) for tag in ("circle", "path", "polyline", "line", "text", "rect")
                                            for element in svg.all(tag)))

    def test_no_text_of_the_study_becomes_markup(self):
        root, main = self.open("hostile")
        self.assertNotIn("data-injected", next(root.all("html")).attributes)
        self.assertEqual(len(list(root.all("script"))), 2, "the study and the page's own script")
        self.assertEqual([list(main.all(tag)) for tag in ("script", "img")], [[], []])
        header, rows = self.rows(main)
        self.assertEqual(header[4], "</script><script>document.documentElement.dataset.injected='yes'</script>")
        self.assertIn("<img src=x", header[2])
        by_trial = {int(row[0]): row for row in rows}
        self.assertEqual(by_trial[12][4], "<b>&amp;\"' --> {{script}}")
        self.assertEqual(len(rows), 40)

    def test_several_objectives_have_fronts_and_a_choice(self):
        _, main = self.open("several")
        self.assertEqual(next(main.all("h1")).text(), "Search: minimise val/loss, maximise val/accuracy with model/size <= 3")
        self.assertEqual(self.titles(main)[0], "val/accuracy against val/loss")
        self.assertEqual([option.text() for option in main.all("option")], ["val/loss", "val/accuracy"])
        _, rows = self.rows(main)
        self.assertTrue(any("violates a constraint" in row[1] for row in rows))

    def test_a_study_without_trials(self):
        _, main = self.open("empty")
        self.assertEqual(self.titles(main), ["Best so far", "Importance", "Trials", "Summary"])
        self.assertIn("no trial is complete yet", main.text())

    def test_the_page_is_not_blank(self):
        for kind in ("plain", "several"):
            picture = self.folder / f"{kind}.png"
            self.browse(self.page(kind), f"--screenshot={picture}", "--window-size=1280,2400")
            # A blank page of this size is a few kilobytes.
            self.assertGreater(picture.stat().st_size, 50_000)


if __name__ == "__main__":
    unittest.main()
