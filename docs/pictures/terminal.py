#!/usr/bin/env python3
"""Draws what a terminal shows while a command runs: `terminal.py PICTURE.svg SECONDS COMMAND [COLUMNS ROWS]`.

Runs the command in a tmux of that size, captures the screen after so many seconds (or when the command has ended before), and
writes it as SVG. Needs tmux.
"""
import html
import re
import subprocess
import sys
import time

FONT, WIDE, HIGH, EDGE = 13, 7.83, 18, 12
COLOURS = ["#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf"]
INK, PAPER = "#dcdfe4", "#1e2127"
SPACE = "&#160;"  # viewers shorten runs of plain spaces
CODE = re.compile(r"\x1b\[([\d;]*)m")


def tmux(*words):
    return subprocess.run(["tmux", "-L", "picture", *words], capture_output=True, text=True, check=True).stdout


def screen(command, seconds, columns, rows):
    """Returns the lines of the terminal, with their colours as escape sequences."""
    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "env", "PS1=$ ", "bash", "--norc")
    try:
        tmux("send-keys", command, "Enter")
        time.sleep(1)
        end = time.monotonic() + seconds - 1
        while time.monotonic() < end and tmux("display-message", "-p", "#{pane_current_command}").strip() != "bash":
            time.sleep(0.1)
        return tmux("capture-pane", "-e", "-p").rstrip("\n").split("\n")
    finally:
        tmux("kill-server")


def spans(line):
    """Yields (text, colour, bold) for each part of a line."""
    colour, bold, at = INK, False, 0
    for match in [*CODE.finditer(line), None]:
        text = line[at:match.start()] if match else line[at:]
        if text:
            yield text, colour, bold
        if match:
            at = match.end()
            for code in map(int, (match.group(1) or "0").split(";")):
                if code in (0, 39):
                    colour = INK
                if code in (0, 22):
                    bold = False
                if code == 1:
                    bold = True
                if 30 <= code <= 37 or 90 <= code <= 97:
                    colour = COLOURS[code % 10]


def drawing(lines, columns):
    width, height = columns * WIDE + 2 * EDGE, len(lines) * HIGH + 2 * EDGE
    rows = []
    for number, line in enumerate(lines):
        parts, column = [], 0
        for text, colour, bold in spans(line):
            if text.strip():
                weight = ' font-weight="bold"' if bold else ""
                parts.append(f'<tspan x="{EDGE + column * WIDE:.1f}" textLength="{len(text) * WIDE:.1f}" fill="{colour}"{weight}>'
                             f"{html.escape(text).replace(chr(32), SPACE)}</tspan>")
            column += len(text)
        rows.append(f'<text y="{EDGE + (number + 0.75) * HIGH:.1f}">{"".join(parts)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
            f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>\n'
            f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{FONT}">\n'
            + "\n".join(rows) + "\n</g>\n</svg>\n")


if __name__ == "__main__":
    picture, seconds, command = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    columns, rows = (int(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 5 else (110, 24)
    with open(picture, "w", encoding="utf-8") as file:
        file.write(drawing(screen(command, seconds, columns, rows), columns))
