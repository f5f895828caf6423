"""Finds what is wrong with a screen. Each function returns the faulty places as sentences; a good screen has none."""
import re

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e[+-]\d+)?|nan|-?inf)"
# "step 1240/2350  epoch 5.3/10 [#####-----]  train/loss 0.3120  84.2k samples/s  eta 12s-14s"
PROGRESS = re.compile(rf"step +\d+(?:/\d+)?(?:  epoch {NUMBER}(?:/{NUMBER})?)?(?: \[#*-*\])?(?:  \w+/\w+ {NUMBER})+"
                      rf"(?:  {NUMBER}[kMGT]? samples/s)?(?:  eta \w+(?:-\w+)?)?")
# What only the progress line has.
OF_PROGRESS = re.compile(r"\bstep +\d+/\d|\bsamples/s\b|\beta \d|\[#*-+\]")
TABLE_HEAD = re.compile(r"\d+ of \d+ trials started, ")


def drawn(raw):
    """Returns all texts that a terminal or a file has received, also those that were drawn over."""
    return [text.rstrip() for text in re.split(r"[\r\n]+", ESCAPE.sub("", raw)) if text.strip()]


def progress_lines(lines):
    return [line for line in lines if PROGRESS.fullmatch(line)]


def too_wide(lines, columns):
    """The terminal breaks a line that is wider than the window, in the middle of a word. Only a word that has no room
    may be broken, and a command on a line of its own, so that it can be copied."""
    def can_be_broken(line):
        return len(line.split()) > 1 and not re.match(r" *sinew \w+( |$)", line)
    return [f"wider than the window: {line!r}, which breaks into {line[:columns]!r} and {line[columns:2 * columns]!r}"
            for line in lines if len(line) > columns and can_be_broken(line)]


def remainders(lines):
    """A progress line stands alone: nothing follows it in its line, and none of it is in the line of another text."""
    return [f"a progress line and another text share a line: {line!r}"
            for line in lines if OF_PROGRESS.search(line) and not PROGRESS.fullmatch(line)]


def glued(lines):
    """A message of the supervisor begins a line."""
    return [f"a message begins in the middle of a line: {line!r}" for line in lines if re.search(r"\S.*sinew: ", line)]


def early_eta(raw):
    """The first progress line cannot know how fast the run is."""
    first = next((text for text in drawn(raw) if re.match(r"step +\d+(/\d+)?  ", text)), "")
    return [f"the first progress line has an ETA: {first!r}"] if re.search(r"\beta\b", first) else []


def unreadable_numbers(lines):
    def digits(number):
        return len(number.replace(".", "").lstrip("0"))
    return [f"a number with too many digits: {line!r}" for line in lines
            if any(digits(number) > 7 for number in re.findall(r"\d+\.\d+", line))]


def controls(raw):
    """A pipe, a file and a dumb terminal get lines of text and nothing else. A terminal's driver makes \\r\\n of \\n."""
    found = sorted(set(re.findall(r"[^\n\x20-\x7e\x80-\uffff]", raw.replace("\r\n", "\n"))))
    return [f"control characters: {found}"] if found else []


def missing(text, rows, wrapped):
    """A message stands on the screen as it is in the log, whole and alone on its lines. If it is wrapped, then between
    words."""
    between = r"(?: +|\n  +)" if wrapped else " +"
    pattern = r"^(?:warning: |error: )?" + between.join(map(re.escape, text.split())) + "$"
    whole = re.search(pattern, "\n".join(rows), re.MULTILINE)
    return [] if whole else [f"not whole on the screen: {text!r}"]
