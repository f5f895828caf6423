"""Makes small tables like those that people have, each with one oddity. `python3 messy.py FOLDER` writes them for a look."""
import gzip
import pathlib
import random
import sys
from dataclasses import dataclass, field

TREES = ("oak", "ash", "elm")


@dataclass
class Messy:
    """A table, and what Sinew has to do with it."""
    name: str                # of the file; of a folder if `files` is given
    content: bytes = b""
    says: tuple = ()         # in the output of init: what was decided or left out
    error: str = ""          # the code of the error, if the table is refused
    target: str = "kind"
    options: str = ""        # lines for the job file below `data:`, if the user has to help
    files: dict = field(default_factory=dict)
    whole: bool = False      # also trained and used for predictions, in a test that takes longer


def rows(count=60, seed=1):
    """Rows of size, weight and kind; the size depends on the kind."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        kind = draw.randrange(3)
        made.append([f"{draw.gauss(100 + 40 * kind, 20):.2f}", f"{draw.gauss(3, 1):.3f}", TREES[kind]])
    return made


def table(lines, sep=",", end="\n", header="size,weight,kind"):
    names = [] if header is None else [header.replace(",", sep)]
    return end.join(names + [sep.join(line) for line in lines]) + end


def with_column(name, value, **options):
    """The usual table with one more column in front: value(i) is its cell in row i."""
    return table([[value(i), *line] for i, line in enumerate(rows(**options))], header=f"{name},size,weight,kind").encode()


def comma(line):
    return [line[0].replace(".", ","), line[1].replace(".", ","), line[2]]


def changed(cell, row=20, column=0):
    """The usual table with another text in one cell."""
    lines = rows()
    lines[row][column] = cell
    return table(lines).encode()


def german(count=60):
    lines = [[f"{1000 + 13.5 * i:,.2f}".translate(str.maketrans(",.", ".,")), line[1].replace(".", ","), line[2]]
             for i, line in enumerate(rows(count))]
    return table(lines, ";")


def long_column():
    """5,000 rows of numbers, and one word far behind the rows that are judged first."""
    lines = rows(5000)
    lines[4321][0] = "unknown"
    return table(lines).encode()


def late_byte():
    text = table(rows(20000)).encode()
    assert len(text) > 1 << 18
    return text + b"100,3,\xe9lan\n"


def dialects():
    usual = table(rows())
    quoted = "size,weight,kind,note\n" + "".join(
        f'{a},{b},{c},"says ""{c}"",\nand more {i}"\n' for i, (a, b, c) in enumerate(rows()))
    return [
        Messy("comma.csv", usual.encode(), whole=True),
        Messy("semicolon.csv", table(rows(), ";").encode(), ("semicolons between cells",)),
        Messy("tab.csv", table(rows(), "\t").encode(), ("tabs between cells",)),
        Messy("pipe.csv", table(rows(), "|").encode(), ("pipes between cells",)),
        Messy("commas.tsv", usual.encode(), ("commas between cells",)),
        Messy("tabs.tsv", table(rows(), "\t").encode()),
        Messy("quotes.csv", quoted.encode(), ("column  ", "note", "text"), whole=True),
        Messy("crlf.csv", usual.replace("\n", "\r\n").encode()),
        Messy("cr.csv", usual.replace("\n", "\r").encode()),
        Messy("no_last_line_end.csv", usual.rstrip("\n").encode()),
        Messy("blank_lines.csv", usual.replace("\n", "\n\n").encode()),
        Messy("bom.csv", b"\xef\xbb\xbf" + usual.encode(), ("UTF-8 with a byte order mark",)),
        Messy("utf16le.csv", b"\xff\xfe" + usual.encode("utf-16-le"), ("UTF-16LE (its byte order mark)",), whole=True),
        Messy("utf16be.csv", b"\xfe\xff" + usual.encode("utf-16-be"), ("UTF-16BE (its byte order mark)",)),
        Messy("utf16_without_mark.csv", usual.encode("utf-16-le"), ("UTF-16LE (every second byte is 0)",)),
        Messy("windows.csv", usual.replace("ash", "Esche \u201e\xe4\u201c").encode("cp1252"), ("windows-1252 (byte 0x84",)),
        Messy("latin.csv", usual.replace("elm", "\xe9lan").encode("latin-1"), ("windows-1252 (byte 0xE9",)),
        Messy("late_byte.csv", late_byte(), error="DATA_NOT_UTF8", says=("late_byte.csv:20002:7: byte 0xE9",)),
        Messy("decimal_comma.csv", table(map(comma, rows()), ";").encode(), ("decimal commas",), whole=True),
        Messy("thousands.csv", german().encode(), ("decimal commas, groups of thousands",)),
        Messy("english_thousands.csv", with_column("income", lambda i: f'"{20000 + 991 * i:,}"'), ("groups of thousands",)),
        Messy("swiss.csv", with_column("income", lambda i: f"{20000 + 991 * i:,}.50".replace(",", "'")),
              ("groups of thousands",)),
        Messy("currency.csv", with_column("price", lambda i: f"${20 + i}.99"), ("written with $",)),
        Messy("percent.csv", with_column("share", lambda i: f"{i} %"), ("written with %",)),
        Messy("no_header.csv", table(rows(), header=None).encode(), ("no header line",), target="column_3", whole=True),
        Messy("gzipped.csv.gz", gzip.compress(usual.encode(), mtime=0)),
        Messy("folder", files={"1.csv": usual.encode(), "2.csv": table(rows(30, 2)).encode(), "README": b"two tables"},
              whole=True),
        Messy("folder_differs", error="DATA_COLUMNS_DIFFER", says=("2.csv:1: has no column 'weight'",),
              files={"1.csv": usual.encode(), "2.csv": b"size,mass,kind\n1,2,oak\n"}),
        Messy("sheet.xlsx", b"PK\x03\x04....", error="DATA_WRONG_FORMAT", says=("Excel", "save it as CSV")),
        Messy("table.parquet", b"PAR1....PAR1", error="DATA_WRONG_FORMAT", says=("Parquet", "pyarrow")),
        Messy("clip.mp4", b"\0\0\0 ftypisom", error="DATA_WRONG_FORMAT", says=("a video", "ffmpeg")),
        Messy("frame.pkl", b"\x80\x04....", error="DATA_WRONG_FORMAT", says=("a Python pickle", "to_csv")),
        Messy("photo.csv", b"\x89PNG\r\n\x1a\n", error="DATA_WRONG_FORMAT", says=("is one image", "a sub-folder of images")),
        Messy("all.zip", b"PK\x03\x04....", error="DATA_WRONG_FORMAT", says=("an archive", "unpack it")),
        Messy("binary.csv", b"size,kind\n1,\x00\x01\x02\n", error="DATA_WRONG_FORMAT", says=("binary.csv:2:3",)),
        Messy("empty.csv", b"", error="DATA_EMPTY", says=("empty.csv",)),
    ]


def headers():
    numbered = with_column("", str)
    return [
        Messy("pandas_index.csv", numbered, ("counts the rows, so it is left out (pandas",), whole=True),
        Messy("unnamed_0.csv", with_column("Unnamed: 0", str), ("counts the rows, so it is left out (pandas",)),
        Messy("empty_name.csv", with_column("", lambda i: str(i * i % 17)), ("it is called 'column_1'",)),
        Messy("same_names.csv", with_column("size", lambda i: str(i * i % 17)), ("it is called 'size.1'",)),
        Messy("spaces.csv", with_column(" age ", lambda i: str(i % 17)), ("has spaces around it; it is read as 'age'",)),
        Messy("last_comma.csv", table([[*line, ""] for line in rows()], header="size,weight,kind,").encode(),
              ("column_4", "empty"), whole=True),
        Messy("ragged.csv", table(rows()).replace("\n", ",\n", 30).replace(",\n", "\n", 29).encode(), error="DATA_BAD_ROW",
              says=("ragged.csv:30: has 4 fields",)),
        Messy("open_quote.csv", table(rows()).encode() + b'"1,2,oak\n3,4,ash\n', error="DATA_BAD_ROW",
              says=("open_quote.csv:62: a quote opens and never closes",)),
    ]


def kinds():
    day = "{:02d}".format
    return [
        Messy("identifier.csv", with_column("id", lambda i: str(7000 + i * 37 % 60)), ("identifier",)),
        Messy("names.csv", with_column("name", lambda i: f"T{i}"), ("identifier",)),
        Messy("code.csv", with_column("store_id", lambda i: str(100 + i % 4)), ("code", "different whole numbers")),
        Messy("leading_zeros.csv", with_column("zip", lambda i: f"0{1067 + i % 3}"), ("category", "3 different words")),
        Messy("rare.csv", with_column("town", lambda i: "rome" if i > 2 else f"t{i}", count=400), ("share <other>",), whole=True),
        Messy("yes_no.csv", with_column("ok", lambda i: ("Yes", "no")[i % 2]), ("boolean",)),
        Messy("true_false.csv", with_column("ok", lambda i: ("True", "False", "")[i % 3]), ("boolean",)),
        Messy("iso_dates.csv", with_column("day", lambda i: f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}"), ("date",), whole=True),
        Messy("times.csv", with_column("when", lambda i: f"2024-03-01T{i % 24:02d}:15:00Z"), ("date",)),
        Messy("german_dates.csv", with_column("tag", lambda i: f"{day(i % 28 + 1)}.{day(i % 12 + 1)}.2024"), ("31/5/2024",)),
        Messy("american_dates.csv", with_column("day", lambda i: f"{i % 12 + 1}/{i % 28 + 1}/24"), ("5/31/2024",)),
        Messy("unclear_dates.csv", with_column("day", lambda i: f"{i % 12 + 1}/{i % 11 + 1}/2024"),
              ("is a guess", "data.table.dates decides it")),
        Messy("mixed_dates.csv", with_column("day", lambda i: "3/25/2024" if i == 7 else f"{13 + i % 15}/3/2024"),
              error="DATA_BAD_CELL", says=("mixed_dates.csv:9:1: column 'day' holds '3/25/2024', which is not a date like 31/5/2024",)),
        Messy("text.csv", with_column("note", lambda i: f"a fine tree number {i} near the {TREES[i % 3]}"), ("text",), whole=True),
        Messy("constant.csv", with_column("planet", lambda i: "earth"), ("constant",)),
        Messy("all_missing.csv", with_column("age", lambda i: ""), ("empty",)),
    ]


def cells():
    spellings = ["", "NA", "N/A", "NaN", "null", "None", "<NA>", "#N/A"]
    return [
        Messy("missing.csv", with_column("age", lambda i: spellings[i % 8] if i % 3 == 0 else str(20 + i)), whole=True),
        Messy("bad_cell.csv", changed("12o.5"), error="DATA_BAD_CELL",
              says=("bad_cell.csv:22:1: column 'size' holds '12o.5', which is not a number", "data.columns.on_bad_cell: missing")),
        Messy("bad_cell_counted.csv", changed("12o.5"), ("1 cell that does not fit counts as missing",),
              options="  columns: {target: kind, on_bad_cell: missing}\n", whole=True),
        Messy("late_bad_cell.csv", long_column(), error="DATA_BAD_CELL", says=("late_bad_cell.csv:4323:1: column 'size'",)),
        Messy("infinite.csv", changed("inf"), error="DATA_BAD_CELL", says=("infinite.csv:22:1", "not a finite number")),
        Messy("missing_target.csv", changed("", column=2), error="DATA_BAD_TARGET", says=("missing_target.csv:22",)),
        Messy("skipped.csv", changed("", column=2), ("1 row of skipped.csv is left out",),
              options="  on_corrupt: skip\n  columns: {target: kind}\n", whole=True),
        Messy("number_target.csv", with_column("price", lambda i: f"{9000 + i * i}.5 €"), ("target",), target="price", whole=True),
        Messy("no_clear_target.csv", table(rows(), header="a,b,c").replace("oak", "1").replace("ash", "2").replace("elm", "3").encode(),
              error="DATA_TARGET_UNCLEAR", says=("'c' (it is the last column)", "--target"), target=""),
        Messy("clear_target.csv", table(rows(), header="a,b,species").encode(), ("its name is that of a target",), target=""),
        Messy("one_column.csv", b"kind\noak\nash\n", error="DATA_BAD_COLUMN", says=("only one column, 'kind'",)),
        Messy("lines.jsonl", "".join(f'{{"size": {a}, "kind": "{c}", "ok": true}}\n' for a, _, c in rows()).encode(), ("constant",)),
        Messy("broken.jsonl", b'{"size": 1, "kind": "oak"}\n{"size": 2, "kind": \n', error="DATA_BAD_ROW", says=("broken.jsonl:2",)),
    ]


def all_messy():
    return dialects() + headers() + kinds() + cells()


def write(messy, folder):
    """Writes the table into the folder and returns its path."""
    path = pathlib.Path(folder) / messy.name
    if messy.files:
        path.mkdir()
        for name, content in messy.files.items():
            (path / name).write_bytes(content)
    else:
        path.write_bytes(messy.content)
    return path


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for one in all_messy():
        print(write(one, sys.argv[1]))
