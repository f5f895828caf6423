"""What a messy file is, and the table that messy_tables.py, messy_others.py and messy_pictures.py make messy.

Two numbers and a word tell the kind (cat or dog). All random numbers come from seeds, so the files are the same each time.
"""
import csv
import dataclasses
import io
import random

COUNT = 120
NAMES = ["length", "weight", "colour", "kind"]


@dataclasses.dataclass
class Messy:
    what: str  # is messy about it
    write: object  # the content (text or bytes) of the file, or a function that writes into a folder
    data: str = "data.csv"
    target: str | None = "kind"  # None: sinew init chooses
    rows: int | None = COUNT  # samples that a person counts in the data; None: nobody can
    columns: tuple | None = None  # names that a person sees; None: not checked
    kinds: dict = dataclasses.field(default_factory=dict)  # column -> the kind that a person sees
    works: bool = False  # nothing is wrong with it, so that no error is right
    refused: bool = False  # no program can use it, so that only an error is right
    job: tuple = ()  # overrides that a person would give
    new: str | None = None  # DATA of sinew predict, if it is another file
    new_rows: int | None = None
    task: str | None = None  # that a person sees: classification or regression
    says: str | None = None  # a pattern of something that the output must name

    def prepare(self, folder):
        if callable(self.write):
            self.write(folder)
        else:
            (folder / self.data).write_bytes(self.write.encode() if isinstance(self.write, str) else self.write)


def rows(count=COUNT, seed=1):
    draw, made = random.Random(seed), []
    for _ in range(count):
        kind = draw.choice(["cat", "dog"])
        length = draw.gauss(30 if kind == "cat" else 60, 8)
        made.append([f"{length:.1f}", f"{length / 5 + draw.gauss(0, 1):.2f}", draw.choice(["red", "blue", "green"]), kind])
    return made


def text(lines, sep=",", end="\n"):
    out = io.StringIO()
    csv.writer(out, delimiter=sep, lineterminator=end).writerows(lines)
    return out.getvalue()


def plain(count=COUNT, **how):
    return text([NAMES, *rows(count)], **how)


def with_column(name, cell, count=COUNT, at=2, **how):
    """The table with one more column; cell(i, draw) is its cell in row i."""
    draw = random.Random(7)
    lines = [row[:at] + [str(cell(i, draw))] + row[at:] for i, row in enumerate(rows(count))]
    return text([NAMES[:at] + [name] + NAMES[at:], *lines], **how)


def column(what, name, cell, kind, **more):
    return Messy(what, with_column(name, cell), columns=(*NAMES, name), kinds={name: kind} if kind else {}, **more)


def target(what, name, cell, task, at=3, given=None, **more):
    """A table whose column to predict has another name, place and kind; cell(row, i, draw) is its cell."""
    draw, lines = random.Random(7), []
    for i, row in enumerate(rows()):
        line = row[:3]
        line.insert(at, str(cell(row, i, draw)))
        lines.append(line)
    names = NAMES[:3]
    names.insert(at, name)
    return Messy(what, text([names, *lines]), target=given, task=task, **more)


def edited(change, **how):
    """The plain table after change(lines); lines[0] is the header."""
    lines = plain(**how).splitlines()
    change(lines)
    return "\n".join(lines) + "\n"


def put(at, line):
    return lambda lines: lines.insert(at, line) if at is not None else lines.append(line)


def replace(at, line):
    return lambda lines: lines.__setitem__(at, line)


def decimal_comma(sep):
    return text([NAMES, *[[cell.replace(".", ",") for cell in row] for row in rows()]], sep=sep)


def price(form):
    return lambda i, draw: form(draw.uniform(1000, 90000))


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def day(i, form):
    import datetime
    return (datetime.datetime(2023, 1, 3, 14, 5, 9) + datetime.timedelta(days=i, minutes=i)).strftime(form)


def date(what, form, kind="date", name="sold_at"):
    return column(what, name, lambda i, draw: day(i * 3, form), kind)
