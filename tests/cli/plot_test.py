"""Trains small jobs with the real programs, draws them with `sinew runs plot`, and reads the pictures and the page of the run
with Python's own parsers.

SINEW names `sinew`. The tests run only if SINEW_WORKER is set, too, which shows that the tensor half was built.
"""
import html.parser
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zlib

SINEW = os.environ.get("SINEW")
SVG = "{http://www.w3.org/2000/svg}"
CLASSES = ["<b>ash</b>", "oak & \"elm\""]
JOB = """
name: trees
model: {{name: mlp, hidden: [8]}}
data:
  format: csv
  train: {{path: {folder}/train.csv}}
  split: {{val: 0.2, test: 0.2}}
  columns: {{target: kind}}
trainer: {{max_duration: 60st, batch_size: 20, eval_interval: 15st, grad_clip_norm: 1.0}}
optimizer: {{name: adamw, lr: 1e-2}}
logging: {{interval: 1st}}
"""


def table(path):
    draw = random.Random(1)
    lines = ["size,kind"]
    for _ in range(300):
        kind = draw.randrange(2)
        lines.append(f'{draw.gauss(10 + 4 * kind, 3):.3f},"{CLASSES[kind].replace(chr(34), chr(34) * 2)}"')
    path.write_text("\n".join(lines) + "\n")


def png_pixels(path):
    """Returns width, height and the rows of a PNG, decoded from its definition: chunks with checksums, one filter a row."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed, header = 8, b"", None
    while at < len(data):
        length, = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, color, *_ = header
    assert (depth, color) == (8, 2), "8 bits each of red, green and blue"
    raw, rows, above = zlib.decompress(packed), [], bytearray(3 * width)
    for y in range(height):
        begin = y * (3 * width + 1)
        kind, row = raw[begin], bytearray(raw[begin + 1:begin + 1 + 3 * width])
        for i in range(len(row)):
            left, up = row[i - 3] if i >= 3 else 0, above[i]
            corner = above[i - 3] if i >= 3 else 0
            near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            row[i] = (row[i] + [0, left, up, (left + up) // 2, near][kind]) & 255
        rows.append(row)
        above = row
    return width, height, rows


class Page(html.parser.HTMLParser):
    """The text and the tags of a page. Fails if an element is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data.strip())


@unittest.skipUnless(SINEW and os.environ.get("SINEW_WORKER"), "needs sinew and sinew-worker")
class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sinew-plot-"))
        table(cls.folder / "train.csv")
        (cls.folder / "job.yaml").write_text(JOB.format(folder=cls.folder))
        cls.run_dir = cls.folder / "runs/trees/a"
        done = cls.sinew("train", "job.yaml", "--run-dir", cls.run_dir)
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def sinew(cls, *words):
        return subprocess.run([SINEW, *map(str, words)], cwd=cls.folder, capture_output=True, text=True, timeout=300)

    def plot(self, *words, run=None):
        done = self.sinew("runs", "plot", run or self.run_dir, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [self.folder / line for line in done.stdout.splitlines()]

    def last(self, run=None):
        return json.loads(((run or self.run_dir) / "report.json").read_text())["last"]

    def texts(self, path):
        return [element.text for element in xml.parse(path).iter(SVG + "text")]

    def test_one_chart_is_a_png_of_its_size_that_is_not_blank(self):
        path, = self.plot("--metric", "loss", "--output", "loss.png")
        width, height, rows = png_pixels(path)
        self.assertEqual((width, height), (800, 544))
        colors = {}
        for row in rows:
            for x in range(0, len(row), 3):
                color = bytes(row[x:x + 3])
                colors[color] = colors.get(color, 0) + 1
        for name, color in (("train", (0, 114, 178)), ("val", (213, 94, 0)), ("test", (0, 158, 115))):
            self.assertGreater(colors.get(bytes(color), 0), 20, name)
        self.assertGreater(colors[b"\xff\xff\xff"], 300_000)

    def test_the_svg_has_the_final_values(self):
        path, = self.plot("--output", "all.svg")
        texts, last = self.texts(path), self.last()
        # The report has the mean since the evaluation before; the curve ends with the last line of metrics.jsonl.
        lines = [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]
        last["train/loss"] = [line["train/loss"] for line in lines if "train/loss" in line][-1]
        for metric in ("train/loss", "val/loss", "test/loss", "val/accuracy", "test/accuracy"):
            self.assertIn(f"{metric.split('/')[0]}  {last[metric]:.5g}", texts, metric)
        for title in ("loss", "accuracy", "learning_rate", "grad_norm", "confusion matrix (test data, step 60)"):
            self.assertIn(title, texts)
        best = json.loads((self.run_dir / "report.json").read_text())["best"]
        self.assertIn(f"best {best['metric']}  {best['value']:.5g}, step {best['step']}", texts)

    def test_the_confusion_matrix_is_that_of_an_evaluation(self):
        at_end = json.loads((self.run_dir / "eval-test.json").read_text())
        picture = self.folder / "pictures/confusion-test.svg"
        self.assertIn(picture, self.plot("--output", "pictures/"))
        texts = self.texts(picture)
        for row in at_end["confusion"]:
            for count in row:
                self.assertTrue(count == 0 or str(count) in texts, count)
        for name in CLASSES:
            self.assertIn(name, texts)
        copy = self.folder / "copy"
        shutil.copytree(self.run_dir, copy, symlinks=True)
        done = self.sinew("eval", copy, "--split", "test", "--json")
        again = json.loads(done.stdout)
        for key in ("confusion", "metrics", "classes", "thresholds", "samples"):
            self.assertEqual(at_end[key], again[key], key)

    def test_roc_curve_has_the_area_of_the_metric(self):
        evaluation = json.loads((self.run_dir / "eval-test.json").read_text())
        right, wrong = (evaluation["thresholds"][f"{which}_positives"] for which in ("true", "false"))
        self.assertEqual(right, sorted(right))
        positives, negatives = (sum(row) for row in reversed(evaluation["confusion"]))
        self.assertEqual((right[-1], wrong[-1]), (positives, negatives))
        points = [(0, 0), *zip(wrong, right)]
        area = sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in zip(points, points[1:])) / positives / negatives
        self.assertAlmostEqual(area, evaluation["metrics"]["auc"], delta=0.02)
        self.plot("--output", "pictures/")
        self.assertIn(f"test  area {evaluation['metrics']['auc']:.4g}", self.texts(self.folder / "pictures/roc.svg"))

    def test_the_page_is_one_file_with_the_final_values(self):
        text = (self.run_dir / "report.html").read_text()
        page, last = Page(text), self.last()
        xml.fromstring(text.replace("<!DOCTYPE html>", ""))
        for metric, value in last.items():
            self.assertIn(metric, page.texts)
            self.assertIn(f"{value:.6g}", page.texts, metric)
        for name in CLASSES:
            self.assertIn(name, page.texts)
        self.assertIn("done", page.texts)
        self.assertIn(f"sinew predict {self.run_dir} DATA", page.texts)
        self.assertGreater(len([tag for tag, _ in page.tags if tag == "svg"]), 5)
        for tag, attributes in page.tags:
            self.assertNotIn(tag, ("script", "link", "img", "iframe", "b", "i"), attributes)  # <b> would be the name of a class
            self.assertFalse({"src", "href", "onload", "onclick"} & set(attributes), attributes)
        self.assertNotIn("url(", text)

    def test_a_browser_shows_the_page(self):
        browser = shutil.which("chromium")
        self.assertTrue(browser, "no chromium: ./dev test installs it")
        picture = self.folder / "page.png"
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
             f"--user-data-dir={self.folder / 'profile'}", f"--screenshot={picture}", "--window-size=1280,2400",
             (self.run_dir / "report.html").as_uri()], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("CONSOLE", done.stderr)
        width, height, rows = png_pixels(picture)
        self.assertEqual((width, height), (1280, 2400))
        shown = {bytes(row[x:x + 3]) for row in rows for x in range(0, len(row), 3)}
        for color in ((0, 114, 178), (213, 94, 0), (0, 158, 115)):  # the curves of train, val and test
            self.assertIn(bytes(color), shown)

    def test_a_failed_run_has_a_page_and_a_resumed_run_another(self):
        run = self.folder / "failed"
        self.sinew("train", "job.yaml", "--run-dir", run, "optimizer.lr=1e6", "optimizer.weight_decay=1")
        self.assertEqual(json.loads((run / "report.json").read_text())["status"], "failed")
        page = Page((run / "report.html").read_text())
        self.assertIn("failed", page.texts)
        self.assertIn(f"sinew resume {run}", page.texts)
        self.plot("--output", "failed.png", run=run)
        done = self.folder / "longer"
        self.sinew("train", "job.yaml", "--run-dir", done)
        self.sinew("resume", done, "trainer.max_duration=90st")
        self.assertTrue(any(text.startswith("90 steps") for text in Page((done / "report.html").read_text()).texts))
        self.assertEqual(json.loads((done / "eval-val.json").read_text())["step"], 90)

    def test_several_workers_leave_the_same_pictures(self):
        run = self.folder / "group"
        done = self.sinew("train", "job.yaml", "--run-dir", run, "--workers", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.last(run), self.last())
        self.assertIn("done", Page((run / "report.html").read_text()).texts)
        for name in ("eval-val.json", "eval-test.json"):
            one, two = (json.loads((folder / name).read_text()) for folder in (self.run_dir, run))
            self.assertEqual({**one, "weights": ""}, {**two, "weights": ""})
        loss = [self.plot("--metric", "val/accuracy", "--output", f"{n}.svg", run=folder)[0]
                for n, folder in enumerate((run, self.run_dir))]
        self.assertEqual(*([line for line in path.read_text().splitlines() if "polyline" in line] for path in loss))

    def test_a_confined_run_has_a_page(self):
        run = self.folder / "confined"
        done = self.sinew("train", "job.yaml", "--run-dir", run, "--sandbox")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("done", Page((run / "report.html").read_text()).texts)
        self.assertEqual(self.last(run), self.last())

    def test_a_run_in_progress_is_drawn(self):
        run = self.folder / "now"
        environment = {**os.environ, "SINEW_PACE": "0.02"}
        process = subprocess.Popen([SINEW, "train", "job.yaml", "--run-dir", run, "trainer.max_duration=100000st"], cwd=self.folder,
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            while not (run / "metrics.jsonl").exists() or b"val/loss" not in (run / "metrics.jsonl").read_bytes():
                self.assertIsNone(process.poll())
            path, = self.plot("--output", "now.svg", run=run)
            self.assertTrue(any(text and "running" in text for text in self.texts(path)))
        finally:
            process.terminate()
            process.communicate(timeout=120)
        self.assertIn("stopped", Page((run / "report.html").read_text()).texts)

    def test_mistakes_are_explained(self):
        for code, *words in (("PLOT_WRONG_ENDING", "--output", "a.jpg"), ("PLOT_NO_METRIC", "--metric", "val/lose")):
            done = self.sinew("runs", "plot", self.run_dir, *words)
            self.assertEqual(done.returncode, 2 if code == "PLOT_WRONG_ENDING" else 1)
            self.assertIn(code, done.stderr)
        self.assertIn("did you mean val/loss", done.stderr)


@unittest.skipUnless(SINEW, "needs sinew")
class Command(unittest.TestCase):
    def test_the_run_of_a_command_has_pictures_and_a_page(self):
        with tempfile.TemporaryDirectory(prefix="sinew-plot-") as name:
            folder = pathlib.Path(name)
            (folder / "say.py").write_text(
                "import json\nfor step in range(1, 6): print(json.dumps({'step': step, 'val/score': 1.5 * step}))\n")
            done = subprocess.run([SINEW, "run", "--run-dir", "r", "--", "python3", "say.py"], cwd=folder, capture_output=True,
                                  text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            page = Page((folder / "r/report.html").read_text())
            self.assertIn("val/score", page.texts)
            self.assertIn("7.5", page.texts)
            self.assertTrue(any("say.py" in text for text in page.texts))
            subprocess.run([SINEW, "runs", "plot", "r", "-o", "r.svg"], cwd=folder, check=True, capture_output=True, timeout=120)
            self.assertIn("val  7.5", [element.text for element in xml.parse(folder / "r.svg").iter(SVG + "text")])


if __name__ == "__main__":
    unittest.main()
