"""Lists the files of the project, and finds the functions in a C++ file. The house tests share this code."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def project_files():
    """Returns the tracked files and the untracked files that git does not ignore, relative to ROOT. Without git (in an
    unpacked archive), returns all files. Never returns files in build/ and runs/."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT,
                            capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
    skipped = ("build/", "runs/", ".git/")
    return sorted({pathlib.Path(name) for name in names
                   if not name.startswith(skipped) and "__pycache__" not in name and (ROOT / name).is_file()})


def source_files():
    return [path for path in project_files() if path.parts[0] == "src" and path.suffix in (".h", ".cpp")]


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


CONTROL = re.compile(r"\s*(if|for|while|switch|else|do|try|catch|namespace|return|case|auto|const auto)\b|\s*\}")


def heading_before(lines, last):
    """Returns the first line of the function heading that ends with `{` on line `last`, or None if a function does not
    begin there."""
    first = last
    while first > 0 and re.match(r"\s{4,}\S", lines[first]):
        first -= 1
    text = "\n".join(lines[first:last + 1])
    if CONTROL.match(lines[first]) or not re.match(r" {0,2}[A-Za-z_~\[]", lines[first]):
        return None
    # The heading of a function has balanced parentheses, no semicolon, and no assignment before its first parenthesis.
    # It may include a constructor's list of initialisers.
    if text.count("(") != text.count(")") or ";" in text or re.search(r"[^=]=[^=]", text.split("(")[0]):
        return None
    return first


def functions(text):
    """Returns (first line, length, heading) of each function. Finds the end by indentation: a function closes at its
    own column."""
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines):
        if not re.search(r"\)[^;]*\{$", line):
            continue
        first = heading_before(lines, number)
        if first is None:
            continue
        column = len(lines[first]) - len(lines[first].lstrip())
        for last in range(number + 1, len(lines)):
            if re.match(rf"\s{{{column}}}\}}", lines[last]):
                found.append((first + 1, last - first + 1, lines[first].strip()))
                break
    return found
