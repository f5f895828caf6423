"""What a user does in the windows of a terminal, and the screens that he sees: the stories of screens_test.py."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "drills"))
import faults
import sinew_process as sp
import window

PROGRAMS = sp.SINEW.resolve().parent
WIDTHS = (60, 80, 120, 200)
SLOW = "SINEW_PACE=100 "  # for runs with several workers
JOB = """
name: digits
model: {name: mlp, hidden: [8]}
data:
  format: idx
  train: {images: train-images, labels: train-labels}
  split: {val: 0.1}
trainer: {max_duration: 60st, batch_size: 32, eval_interval: 20st}
optimizer: {name: adamw, lr: 3e-3}
logging: {interval: 10st}
tune:
  trials: 3
  parallel: 2
  sampler: random
  monitor: val/loss
  search:
    optimizer.lr: {low: 1e-4, high: 0.1, log: true}
    optimizer.weight_decay: {low: 1e-4, high: 0.1, log: true}
    model.hidden: [[8], [16]]
"""
WRONG_JOB = """
name: wrong
model: {name: mlp, hiden: [8]}
data: {format: idx, train: {images: train-images, labels: train-labels}}
trainer: {max_duration: 60 steps, batch_size: -32}
optimizer: {name: adamv}
"""
TRAIN = "sinew train job.yaml --run-dir runs/one"
ENDLESS = "sinew train job.yaml trainer.max_duration=100000st "
GROUP = "sinew train job.yaml --workers 2 --run-dir runs/two"
LOOKS = ("sinew runs", "sinew runs show one", "sinew runs compare one two", "sinew predict runs/one train-images", "sinew --help",
         "sinew train --help", "sinew runs --help")
DEADLY = "SINEW_POISON=7:1:segv sinew train job.yaml --workers 2 --run-dir runs/deadly"
FAILING = "SINEW_POISON=7:1:error sinew train job.yaml --run-dir runs/failing"
# The process that trains dies itself. What the shell says about that is left out.
CRASH = "{ SINEW_POISON=7:1:segv sinew train job.yaml --run-dir runs/crash 2>&3; } 3>&2 2>/dev/null"
TUNE = "sinew tune job.yaml --study study"


def write_houses(path):
    """Writes a table whose rows repeat, so that `sinew check` has much to say."""
    rows = [f"{i % 6 + 1},{(i % 6 + 1) * 18 + i * 7 % 11},{['bonn', 'kiel', 'ulm'][i % 3]},{(i % 6) * 36 + i % 3 * 10 + i % 9}" for i in range(240)]
    path.write_text("\n".join(["rooms,area,city,price", *rows]) + "\n")


class Place:
    """A folder in which a user works, and the screens that he has seen there."""

    def __init__(self, terminal, folder, name):
        self.terminal, self.folder, self.screens = terminal, pathlib.Path(folder) / name, []
        self.messages_seen = {}  # run directory -> how many messages of its log belong to earlier screens
        self.folder.mkdir()
        sp.write_idx(self.folder, "train", 333, 1)
        (self.folder / "job.yaml").write_text(JOB)
        (self.folder / "wrong.yaml").write_text(WRONG_JOB)
        write_houses(self.folder / "houses.csv")

    def run(self, columns, command, code=0):
        """Runs a command in a window. `code`: the exit code that it must have."""
        self.keep(self.terminal.run(columns, self.folder, command), code)
        return self.screens[-1]

    def keep(self, screen, code):
        screen.wanted_code, screen.folder, screen.messages = code, self.folder, self.new_messages(screen)
        self.screens.append(screen)

    def new_messages(self, screen):
        """Returns (level, text) of the messages that the run of this screen has written into its log meanwhile."""
        directory = re.search(r"sinew train .*--run-dir (\S+)", screen.command) or re.search(r"sinew resume (\S+)", screen.command)
        log = self.folder / directory[1] / "log.jsonl" if directory else self.folder / "none"
        if not log.exists():
            return []
        messages = [(line["level"], line["text"]) for line in map(json.loads, log.read_text().splitlines())]
        first = self.messages_seen.get(log, 0)
        self.messages_seen[log] = len(messages)
        return messages[first:]

    def open(self, columns, command):
        return self.terminal.open(columns, self.folder, command)

    def stop(self, run, text):
        """Stops a run with Ctrl-C when the text is on the screen."""
        run.wait_for(text)
        run.press("C-c")
        self.keep(run.ended(), 75)

    def written(self, command, code=0):
        """Runs a command whose output goes into a pipe, or where the command itself sends it. Keeps the text as a screen."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.terminal.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=window.PATIENCE)
        file = re.search(r">(\w+\.txt)", command)
        text = ((self.folder / file[1]).read_bytes() if file else done.stdout).decode(errors="replace")
        self.keep(text_as_screen(command, text, done.returncode), code)


def text_as_screen(command, text, code):
    lines = text.split("\n")
    return window.Screen(command, 0, lines[:-1], lines[:-1], "", text, lines[-1], code)


def in_a_window(place, columns):
    """What a user sees who works in a window of this width."""
    place.run(columns, TRAIN)
    place.run(columns, GROUP)
    for command in LOOKS:
        place.run(columns, command)
    place.run(columns, "sinew init houses.csv --target price -o houses.yaml")
    place.run(columns, "sinew check houses.yaml --time 1s")
    place.run(columns, "sinew train wrong.yaml", 2)
    place.run(columns, "sinew train job.yaml data.train.images=no-such-folder/no-such-images", 1)
    place.run(columns, "sinew train job.yaml --run-directory runs/a --workers 2", 2)
    place.run(columns, FAILING, 1)
    place.run(columns, DEADLY, 1)
    place.run(columns, "sinew runs show deadly")


def stopped(place, columns):
    """Ctrl-C, with one worker and with two, and the way to go on."""
    place.stop(place.open(columns, ENDLESS + "--run-dir runs/stopped-one"), "step 20:")
    two = place.open(columns, SLOW + ENDLESS + "--workers 2 --run-dir runs/stopped-two")
    two.wait_for("step 20:")
    place.run(columns, "sinew ps runs/stopped-two")
    if columns == 200:  # the run goes on without the worker
        os.kill(sp.status(place.folder / "runs/stopped-two")["members"][-1]["pid"], signal.SIGKILL)
        two.wait_for("killed by SIGKILL")
        wait_for_drawing(two, "\x1b[K")
    place.stop(two, "step 20:")
    place.run(columns, "sinew ps runs/stopped-two", 1)
    if columns == 80:  # the commands are the same in all windows
        place.run(columns, CRASH, 139)
        for screen in [screen for screen in place.screens if screen.wanted_code == 75]:
            # The next evaluation, whichever step it is of. In the live line, colours separate a name from its number.
            place.stop(place.open(columns, command_after("to go on: ", screen)), "train/loss 0.")


def tuned(place, columns):
    tune = place.open(columns, TUNE)
    wait_for_table(tune)
    table = tune.screen()
    screen = tune.ended()
    place.keep(screen, 0)
    screen.midway = [table]
    if columns == 80:
        # failglob: as zsh does, bash refuses a word with [8] that matches no file, unless the word is quoted.
        place.run(columns, f"bash -O failglob -c {json.dumps(command_after('to train it again: ', screen))}")
        place.run(columns, "sinew tune report study")


def resized(place):
    """The window becomes narrow in the middle of a run, and wide again."""
    run = place.open(120, ENDLESS + "trainer.eval_interval=100st --run-dir runs/resized")
    run.wait_until(lambda w: any(len(line) > 60 and faults.PROGRESS.fullmatch(line) for line in w.screen().lines), "a long progress line")
    run.resize(60)
    wait_for_drawing(run, "\x1b[K")
    narrow = run.screen()
    run.resize(120)
    wait_for_drawing(run, "\x1b[K")
    place.stop(run, "run directory")
    place.screens[-1].midway = [narrow]


def resized_study(place):
    tune = place.open(120, "sinew tune job.yaml tune.trials=100 trainer.max_duration=1000st --study resized")
    wait_for_table(tune)
    tables = []
    for columns in (60, 120):
        tune.resize(columns)
        wait_for_drawing(tune, "\x1b[J")
        tables.append(tune.screen())
    place.stop(tune, "study: ")
    place.screens[-1].midway = tables
    place.stop(place.open(120, command_after("to go on: ", place.screens[-1])), "trial ")


def without_colors(place):
    for command in (TRAIN, GROUP, TUNE):
        place.run(80, "NO_COLOR=1 " + command)
    place.run(80, "NO_COLOR=1 " + DEADLY, 1)


def dumb(place):
    for command in (TRAIN, GROUP, TUNE):
        place.run(80, "TERM=dumb " + command)
    place.run(80, "TERM=dumb " + DEADLY, 1)
    place.run(80, "TERM=dumb sinew runs compare one two")


def into_a_pipe(place):
    for command in (TRAIN, GROUP, *LOOKS, TUNE, "sinew init houses.csv --target price -o houses.yaml", "sinew check houses.yaml --time 1s"):
        place.written(command)
    # Its first step takes a second, so the program has measured a speed when it shows its first progress line.
    place.written("SINEW_PACE=3000 sinew train job.yaml trainer.max_duration=2st --workers 2 --run-dir runs/slow")
    for command, code in ((DEADLY, 1), ("sinew train wrong.yaml", 2), ("sinew ps one", 1)):
        place.written(command, code)


def into_a_file(place):
    place.written(GROUP + " >out.txt 2>&1")
    place.written(TUNE + " >study.txt 2>&1")
    # Only the errors go into a file. The mirror cannot be made, which is a warning.
    shown = place.run(60, TRAIN + " checkpoint.mirror=job.yaml/mirror 2>errors.txt")
    text = (place.folder / "errors.txt").read_text()
    place.keep(text_as_screen("sinew train, its errors", text, 0), 0)
    place.screens[-1].messages = [(level, sentence) for level, sentence in shown.messages if level != "info"]
    shown.messages = [(level, sentence) for level, sentence in shown.messages if level == "info"]


def command_after(words, screen):
    """Returns the command that the screen advises, as a user copies it."""
    found = re.findall(re.escape(words.rstrip()) + r"\s+(.*)", "\n".join(screen.lines))
    return found[-1] if found else f"echo 'the screen has no {words}'; false"


def wait_for_table(tune):
    tune.wait_until(lambda w: any(line.startswith("  running ") for line in w.screen().lines), "the table of the trials")


def wait_for_drawing(run, sign):
    """Waits until the live part of the screen has been drawn twice again."""
    before = run.raw().count(sign)
    run.wait_until(lambda w: w.raw().count(sign) >= before + 2, "the next drawing")


def all_stories():
    """Returns (function, arguments after its place) of all stories, the longest first."""
    wide = [(story, columns) for story in (in_a_window, stopped, tuned) for columns in WIDTHS]
    return wide + [(story,) for story in (dumb, into_a_pipe, without_colors, resized, resized_study, into_a_file)]
