"""Runs commands in windows of a real terminal, tmux, and reads what a user sees there."""
import dataclasses
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import time

ROWS = 40
PATIENCE = 240  # seconds; on a crowded machine, a run of a second may take this long
END = re.compile(r"<exit (\d+)>")  # a window prints it at once after the command, where a shell would print its prompt


@dataclasses.dataclass
class Screen:
    """What a user sees, with everything that has scrolled out of the window, and how it came about."""
    command: str
    columns: int
    rows: list  # as they are in the window
    lines: list  # as the program wrote them: rows that the terminal had to break are one line
    colors: str  # the rows with the escape sequences for their colours
    raw: str  # everything that the terminal has received
    end: str = ""  # the row in which the shell's prompt would stand
    code: int = -1
    cursor_visible: bool = True
    # Set by the test.
    wanted_code: int = 0
    folder: pathlib.Path = None  # in which the command ran
    messages: list = dataclasses.field(default_factory=list)  # (level, text) of what the run wrote into its log
    midway: list = dataclasses.field(default_factory=list)  # screens from the middle of the command

    def __str__(self):
        return f"{self.columns} columns: {self.command}"


class Terminal:
    """A server of tmux for one test. Its windows do not inherit what the user has set for his own terminal."""

    def __init__(self, folder, programs):
        if not shutil.which("tmux"):
            raise AssertionError("no tmux: ./dev test installs it")
        self.folder = pathlib.Path(folder)
        personal = re.compile(r"TMUX|NO_COLOR|COLUMNS|LINES|TERM|SINEW_|LC_|LANG")
        self.environment = {name: value for name, value in os.environ.items() if not personal.match(name)}
        self.environment.update(TERM="xterm-256color", LC_ALL="C.UTF-8", PATH=f"{programs}:{os.environ['PATH']}")
        self.numbers = itertools.count()
        settings = self.folder / "tmux.conf"
        settings.write_text("set -g history-limit 20000\nset -g exit-empty off\nset -g remain-on-exit off\n")
        self.tmux("-f", settings, "start-server")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-S", str(self.folder / "socket"), *map(str, words)], env=self.environment,
                              capture_output=True, text=True, errors="replace", timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f"tmux {words[0]}: {done.stderr}")
        return done.stdout

    def close(self):
        self.tmux("kill-server")

    def open(self, columns, folder, command):
        """Begins a command of the shell in a new window."""
        return Window(self, f"w{next(self.numbers)}", columns, folder, command)

    def run(self, columns, folder, command):
        return self.open(columns, folder, command).ended()


class Window:
    def __init__(self, terminal, name, columns, folder, command):
        self.terminal, self.name, self.columns, self.command = terminal, name, columns, command
        self.raw_file = terminal.folder / f"{name}.raw"
        script = terminal.folder / f"{name}.sh"
        # The shell outlives a Ctrl-C as an interactive shell does. The command begins when the window is recorded.
        script.write_text(f"cd {folder}\ntrap : INT\ntmux wait-for {name}\n{command}\nprintf '<exit %s>' $?\nexec sleep 1000\n")
        self.raw_file.touch()
        terminal.tmux("new-session", "-d", "-s", name, "-x", columns, "-y", ROWS, f"exec bash {script}")
        terminal.tmux("pipe-pane", "-t", name, f"exec cat >{self.raw_file}")
        terminal.tmux("wait-for", "-S", name)

    def raw(self):
        return self.raw_file.read_bytes().decode(errors="replace")

    def press(self, key):
        self.terminal.tmux("send-keys", "-t", self.name, key)

    def resize(self, columns):
        self.columns = columns
        self.terminal.tmux("resize-window", "-t", self.name, "-x", columns, "-y", ROWS)

    def screen(self):
        def capture(*words):
            return self.terminal.tmux("capture-pane", "-p", "-t", self.name, "-S", "-", *words)

        def lines_of(text):
            return [line.rstrip() for line in text.rstrip().split("\n")]

        rows, lines, colors = lines_of(capture()), lines_of(capture("-J")), capture("-e")
        visible = self.terminal.tmux("display-message", "-p", "-t", self.name, "#{cursor_flag}").strip() == "1"
        return Screen(self.command, self.columns, rows, lines, colors, self.raw(), cursor_visible=visible)

    def wait_until(self, condition, what):
        """Waits until the condition holds, which takes this window."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if condition(self):
                return
            if END.search(self.raw()):
                break
            time.sleep(0.02)
        seen = "\n".join(self.screen().rows)
        raise AssertionError(f"{self.command}: in vain waited for {what}; the screen is:\n{seen}")

    def wait_for(self, text):
        self.wait_until(lambda window: text in window.raw(), repr(text))

    def ended(self):
        """Waits for the end of the command. Returns its screen, without the end's mark."""
        end = time.monotonic() + PATIENCE
        while not END.search(self.raw()):
            if time.monotonic() > end:
                shown = "\n".join(self.screen().rows)
                raise AssertionError(f"{self.command} does not end; the screen is:\n{shown}")
            time.sleep(0.02)
        screen = self.screen()
        self.terminal.tmux("kill-session", "-t", self.name)
        screen.end = screen.rows.pop()
        mark = END.search(screen.end)
        screen.code = int(END.search(screen.raw)[1])
        if mark and mark.start() == 0:
            screen.lines.pop()
        screen.raw = screen.raw[:screen.raw.rindex("<exit")]
        return screen
