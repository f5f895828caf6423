"""Tables as people have them, for messy_files.py. TABLES: name -> Messy. Each is messy in one way."""
import gzip
import os
import random
import zipfile

from messy_place import COUNT, NAMES, Messy, column, date, day, decimal_comma, edited, german, plain, price, put, replace, rows, target, text, with_column


def big(count):
    return lambda folder: (folder / "data.csv").write_text(plain(count))


def wide(folder):
    draw = random.Random(3)
    lines = [[*[f"{draw.gauss(0, 1):.3f}" for _ in range(1999)], row[3]] for row in rows()]
    (folder / "data.csv").write_text(text([[*[f"f{i}" for i in range(1999)], "kind"], *lines]))


def zipped(folder):
    with zipfile.ZipFile(folder / "data.zip", "w") as archive:
        archive.writestr("data.csv", plain())


def unseen(folder):
    (folder / "data.csv").write_text(plain())
    (folder / "new.csv").write_text("length,weight,colour\n30.1,6.02,purple\n61,12.2,\n,,red\n")


def header_alone(folder):
    (folder / "data.csv").write_text(plain())
    (folder / "new.csv").write_text("length,weight,colour\n")


def pipe_at_predict(folder):
    (folder / "data.csv").write_text(plain())
    os.mkfifo(folder / "new.csv")


def lacks_column(folder):
    (folder / "data.csv").write_text(plain())
    (folder / "new.csv").write_text("weight,colour\n6.02,red\n12.2,blue\n")


def other_form(folder):
    """New rows that Excel wrote: semicolons, other order and case of the columns, one column more, Windows-1252."""
    (folder / "data.csv").write_text(plain())
    (folder / "new.csv").write_bytes("colour;weight;length;note\r\nred;6.02;30.1;größer\r\nblue;12.2;61;\r\n".encode("cp1252"))


def several(folder, orders, extra=None):
    (folder / "parts").mkdir()
    for number, order in enumerate(orders):
        lines = [NAMES, *rows(40, seed=number)]
        (folder / "parts" / f"part{number}.csv").write_text(text([[line[i] for i in order] for line in lines]))
    if extra:
        (folder / "parts" / extra[0]).write_text(extra[1])


def one_beside(name, content):
    """A folder of two files of 40 rows, and another file."""
    def write(folder):
        several(folder, (ORDER, ORDER))
        (folder / "parts" / name).parent.mkdir(exist_ok=True)
        (folder / "parts" / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return write


def part(sep=","):
    return text([NAMES, *rows(40, seed=2)], sep=sep)


def beside(what, name, content, count=120, **more):
    return Messy(f"a folder of files, and {what}", one_beside(name, content), data="parts", rows=count, says=more.pop("says", None), **more)


def train_and_test(folder):
    (folder / "parts").mkdir()
    (folder / "parts/train.csv").write_text(plain())
    (folder / "parts/test.csv").write_text(text([NAMES, *rows(40, seed=9)]))


def sentences(i):
    return " ".join(random.Random(i).choices(["good", "bad", "film", "very", "not"], k=8)) + f" {i}"


ORDER, OTHER = (0, 1, 2, 3), (3, 1, 0, 2)
NOTES = ["arrived late, but in good shape", "the owner says it is calm and eats well", "has a scar on the left ear",
         "was found near the old mill", "does not like other animals at all"]
NA = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "<NA>", "#N/A"]
LONG = ["-", ".", "missing", "unknown", "n.a.", "NaT", "(blank)", "--"]

TABLES = {
    "semicolon": Messy("separator ;", plain(sep=";"), columns=NAMES),
    "tab": Messy("tabs, but named .csv", plain(sep="\t"), columns=NAMES),
    "pipe": Messy("separator |", plain(sep="|"), columns=NAMES),
    "space": Messy("one space between cells", plain(sep=" "), columns=NAMES),
    "aligned": Messy("several spaces between cells", "".join("".join(f"{cell:<10}" for cell in row).rstrip() + "\n"
                                                           for row in [NAMES, *rows()]), columns=NAMES),
    "sep_line": Messy("sep=; above the header, as Excel likes it", "sep=;\n" + plain(sep=";"), columns=NAMES, works=True, says=r"sep="),
    "quoted_newline": column("line ends in quotes", "note", lambda i, draw: f"{draw.choice(NOTES)}\nseen {i}", "text"),
    "doubled_quote": column("doubled quotes", "note", lambda i, draw: f'{draw.choice(NOTES)} "{i}" times', "text"),
    "unbalanced_quote": Messy("a quote that never ends", edited(replace(50, '30.1,6.0,"red,cat'))),
    "swallowed_rows": Messy("two stray quotes, 40 lines apart",
                            edited(lambda lines: (replace(50, '30.1,6.0,"red,cat')(lines), replace(90, '30.1,6.0,red",cat')(lines))),
                            rows=80, says=r"39 lines that look like rows"),
    "inch_quote": Messy("a quote inside a cell", edited(replace(50, '30.1,6.0,red 5" wide,cat')), columns=NAMES),
    "no_header": Messy("no header", text(rows()), target="column_4", columns=("column_1", "column_2", "column_3", "column_4")),
    "no_header_words": Messy("no header, words only", text([[row[2], "big" if float(row[0]) > 45 else "small", row[3]] for row in rows()]),
                             target="column_3"),
    "no_header_text": Messy("no header, sentences and 0 or 1", text([[sentences(i), i % 2] for i in range(COUNT)]), target=None),
    "no_header_date": Messy("no header, dates and names", text([[day(i, "%Y-%m-%d"), f"name{i}", row[0], row[3]] for i, row in enumerate(rows())]),
                            target="column_4"),
    "bom": Messy("byte order mark", b"\xef\xbb\xbf" + plain().encode(), columns=NAMES),
    "utf16_le": Messy("UTF-16 LE", b"\xff\xfe" + plain().encode("utf-16-le"), columns=NAMES),
    "utf16_be": Messy("UTF-16 BE", b"\xfe\xff" + plain(sep=";").encode("utf-16-be"), columns=NAMES),
    "latin1": Messy("Latin-1", with_column("größe", lambda i, draw: draw.choice(["groß", "klein", "außen"])).encode("latin-1"),
                    columns=(*NAMES, "größe"), kinds={"größe": "category"}),
    "windows1252": Messy("Windows-1252", with_column("preis €", lambda i, draw: f"€ {i}.50").encode("cp1252"), columns=(*NAMES, "preis €"),
                         kinds={"preis €": "number"}),
    "late_latin1": Messy("UTF-8, with one byte of Latin-1 far below", plain(20000).encode() + b"30.1,6.0,r\xe9d,cat\n", rows=20001),
    "utf32": Messy("UTF-32", plain().encode("utf-32"), says=r"UTF-32"),
    "hard_spaces": Messy("a hard space after each number", text([NAMES, *[[row[0] + "\u00a0", *row[1:]] for row in rows()]]), columns=NAMES,
                         kinds={"length": "number"}, works=True),
    "end_of_file": Messy("the end of file of DOS", plain() + "\x1a", columns=NAMES, works=True),
    "nul_bytes": Messy("zero bytes in the middle", plain().encode() + b"\0" * 600),
    "decimal_comma": Messy("decimal comma, ;", decimal_comma(";"), kinds={"length": "number", "weight": "number"}),
    "decimal_comma_quoted": Messy("decimal comma in quotes", decimal_comma(","), kinds={"length": "number", "weight": "number"}),
    "thousands": column("1,234.50", "price", price("{:,.2f}".format), "number"),
    "thousands_german": column("1.234,50 beside 30.1", "price", price(german), "number"),
    "thousands_narrow": column("1 234.50 with a narrow space", "price", price(lambda x: f"{x:,.2f}".replace(",", "\u202f")), "number"),
    "thousands_swiss": column("1'234.50", "price", price(lambda x: f"{x:,.2f}".replace(",", "'")), "number"),
    "thousands_indian": column("1,23,456.00", "price", lambda i, draw: f"{i % 9 + 1},{i % 90 + 10},456.00", "number"),
    "currency": column("$1,234.50", "price", price("${:,.2f}".format), "number"),
    "currency_mixed": column("two currencies", "price", lambda i, draw: f"{'$€'[i % 2]}{draw.uniform(1, 99):.2f}", None),
    "accounting": column("(12.50) for -12.50", "balance", lambda i, draw: f"({i}.50)" if i % 3 == 0 else f"{i}.50", "number"),
    "percent": column("12.5 %", "share", lambda i, draw: f"{draw.uniform(0, 99):.1f} %", "number"),
    "some_percent": column("12 % beside 0.12", "share", lambda i, draw: f"{i % 99} %" if i % 4 else f"0.{i % 99:02}", None),
    "units": column("12 kg", "mass", lambda i, draw: f"{i + 3} kg", "number"),
    "ranges": column("10-20", "age", lambda i, draw: f"{i % 9}0-{i % 9 + 1}0", "category"),
    "plus_sign": column("+12", "change", lambda i, draw: f"{draw.gauss(0, 9):+.1f}", "number"),
    "unicode_minus": column("a true minus sign", "change", lambda i, draw: f"{draw.gauss(0, 9):.1f}".replace("-", "\u2212"), "number"),
    "pandas_index": Messy("the index of pandas", text([["", *NAMES], *[[i, *row] for i, row in enumerate(rows())]]), columns=NAMES),
    "empty_names": Messy("columns without names", text([["length", "", "", "kind"], *rows()])),
    "duplicate_names": Messy("two columns of one name", text([["size", "size", "colour", "kind"], *rows()]), columns=("size", "size.1")),
    "strange_names": Messy("spaces, quotes, commas, line ends in names",
                           text([['len, "cm"', "weight\n(kg)", "Farbe 🎨 größe", "kind"], *rows()])),
    "reserved_names": Messy("names of options and signs", text([["target", "a=<missing>", "${HOME}", "kind"], *rows()])),
    "case_names": Messy("spaces around names", text([[" length", "weight ", "Colour", " kind "], *rows()])),
    "cr": Messy("CR alone", plain(end="\r"), columns=NAMES),
    "crlf": Messy("CRLF", plain(end="\r\n"), columns=NAMES),
    "mixed_ends": Messy("CRLF and LF", plain(60, end="\r\n") + text(rows()[60:]), columns=NAMES),
    "no_final_newline": Messy("no final line end", plain().rstrip("\n"), columns=NAMES),
    "blank_lines": Messy("blank lines", edited(lambda lines: [lines.insert(at, "") for at in (90, 50, 1, 0)]) + "\n\n", columns=NAMES),
    "separator_lines": Messy("lines of separators at the end", plain() + ",,,\n" * 5, columns=NAMES, rows=125),
    "comments": Messy("comments at the top", "# made by export 1.2\n# on Monday, at noon\n" + plain(), columns=NAMES, works=True, says=r"left out"),
    "title": Messy("a title above the header", "Animals of 2024\n" + plain(), columns=NAMES, works=True, says=r"left out"),
    "title_blank": Messy("a title and a blank line above the header", "Animals of 2024,,,\n,,,\n" + plain(), columns=NAMES, works=True, says=r"left out"),
    "units_line": Messy("a line of units below the header", edited(put(1, "cm,kg,,")), rows=COUNT + 1, columns=NAMES),
    "header_again": Messy("the header again in the middle", edited(put(60, ",".join(NAMES))), rows=COUNT + 1, columns=NAMES),
    "totals": Messy("a row of totals at the end", plain() + "5432.1,1086.4,,\n", columns=NAMES, rows=121),
    "totals_word": Messy("Total: at the end", plain() + "Total:,1086.4,,\n", columns=NAMES, rows=121),
    "footer": Messy("a source below the table", plain() + "\nSource: the ministry of animals\n", columns=NAMES, rows=COUNT + 1),
    "single_quotes": Messy("single quotes", "".join(",".join(f"'{cell}'" for cell in row) + "\n" for row in [NAMES, *rows()])),
    "two_separators": Messy("commas, then semicolons", plain(60) + text(rows()[60:], sep=";")),
    "one_long_line": Messy("one line of 1 MB", " ".join(str(i) for i in range(150000)), rows=None, refused=True),
    "ragged_more": Messy("one row with a cell more", edited(replace(50, "30.1,6.0,red,cat,old"))),
    "ragged_fewer": Messy("one row with a cell less", edited(replace(50, "30.1,6.0,red"))),
    "trailing_sep": Messy("a separator after each line", "".join(line + ",\n" for line in plain().splitlines())),
    "trailing_sep_rows": Messy("a separator after each row", "".join(line + ",\n" * (i > 0) + "\n" * (i == 0)
                                                                   for i, line in enumerate(plain().splitlines()))),
    "bad_cell": Messy("a word among numbers", edited(replace(50, "large,6.0,red,cat")), columns=NAMES, kinds={"length": "number"}),
    "bad_cell_skip": Messy("a word among numbers, on_bad_cell: missing", edited(replace(50, "large,6.0,red,cat")), columns=NAMES,
                           kinds={"length": "number"}, job=("data.columns.on_bad_cell=missing",)),
    "na": column("12 spellings of missing", "age", lambda i, draw: NA[i % 12] if i % 3 == 0 else i, "number"),
    "na_odd": column("unusual spellings of missing", "age", lambda i, draw: LONG[i // 20 % 8] if i % 20 == 0 else i, "number"),
    "na_often": column("- for missing, often", "age", lambda i, draw: "-" if i % 3 == 0 else i, "number"),
    "na_999": column("-999 for missing", "age", lambda i, draw: -999 if i % 3 == 0 else i, "number"),
    "all_missing": column("a column without values", "extra", lambda i, draw: "", "empty"),
    "constant": column("a constant column", "extra", lambda i, draw: "same", "constant"),
    "identifier": column("an identifier", "animal_id", lambda i, draw: f"A{i * 7919 % 100000:05}", "identifier"),
    "identifier_number": column("numbers as identifiers", "id", lambda i, draw: i + 1, "identifier"),
    "spaces_in_cells": column("spaces around words", "extra", lambda i, draw: draw.choice(["yes", " yes", "no ", "no"]), "boolean"),
    **{f"boolean_{a}": column(f"{a} and {b}", "tame", lambda i, draw, a=a, b=b: draw.choice([a, b]), kind)
       for a, b, kind in (("yes", "no", "boolean"), ("True", "False", "boolean"), ("1", "0", "boolean"), ("Y", "N", "boolean"),
                          ("ja", "nein", "category"), ("oui", "non", "category"))},
    "boolean_missing": column("true, false and missing", "tame", lambda i, draw: draw.choice(["TRUE", "FALSE", ""]), "boolean"),
    "zip_codes": column("leading zeros", "zip", lambda i, draw: f"{draw.randrange(20):05}", "category"),
    "date_iso": date("dates as 2023-01-03", "%Y-%m-%d"),
    "date_us": date("dates as 01/03/2023", "%m/%d/%Y"),
    "date_european": date("dates as 03.01.2023", "%d.%m.%Y"),
    "date_time": date("2023-01-03 14:05:09", "%Y-%m-%d %H:%M:%S"),
    "date_zone": date("times with zones", "%Y-%m-%dT%H:%M:%S+02:00"),
    "date_utc": date("times of UTC", "%Y-%m-%dT%H:%M:%S.123Z"),
    "date_pm": date("times with PM", "%m/%d/%Y %I:%M %p"),
    "date_month": date("3-Jan-23", "%d-%b-%y"),
    "date_words": date("Jan 03, 2023", "%b %d, %Y"),
    "time_of_day": column("times without dates", "at", lambda i, draw: f"{i % 24:02}:{i * 7 % 60:02}", "number"),
    "date_excel": column("dates as Excel counts days", "sold_at", lambda i, draw: 44930 + i, None),
    "epoch": column("seconds since 1970", "timestamp", lambda i, draw: 1672750000 + 86400 * i, None),
    "free_text": column("free text", "note", lambda i, draw: f"{draw.choice(NOTES)}, {draw.choice(NOTES)} {i}", "text"),
    "many_categories": column("60 words", "place", lambda i, draw: f"town {draw.randrange(60)}", "category"),
    "rare_categories": column("words that occur once", "place", lambda i, draw: "home" if i % 10 else f"place{i}", "category"),
    "mixed_types": column("numbers and words", "code", lambda i, draw: draw.choice([i, f"x{i % 5}"]), None),
    "exponents": column("1.5e-7", "level", lambda i, draw: f"{draw.uniform(1, 9):.2f}e{draw.choice('+-')}{i % 9:02}", "number"),
    "infinite": column("inf among numbers", "level", lambda i, draw: "inf" if i == 40 else i, "number"),
    "hex": column("0x1f", "level", lambda i, draw: hex(i + 16), None),
    "huge_integers": column("integers above 2^53", "key", lambda i, draw: 9007199254740993 + i, None),
    "huge": column("1e300", "level", lambda i, draw: f"{draw.uniform(1, 9):.3f}e300", None, says=r"larger unit"),
    "too_huge": column("1e999", "level", lambda i, draw: "1e999" if i == 40 else i, "number"),
    "long_cell": column("a cell of 2 MB", "note", lambda i, draw: "long " * 400000 if i == 9 else draw.choice(NOTES) + f" {i}", "text"),
    "rare_class": Messy("a class of one sample", edited(replace(50, "45,9,red,fox")), columns=NAMES),
    "imbalance": target("99 : 1", "kind", lambda row, i, draw: "dog" if i % 100 == 0 else "cat", "classification", given="kind"),
    "one_class": target("one class", "kind", lambda row, i, draw: "cat", None, given="kind"),
    "class_case": target("Cat, cat and ' cat '", "kind", lambda row, i, draw: draw.choice(["Cat", "cat", " cat "]) if row[3] == "cat" else "dog",
                         "classification", given="kind"),
    "class_numbers": target("classes 0.0 and 1.0", "label", lambda row, i, draw: float(row[3] == "cat"), "classification"),
    "target_missing": target("a target that is missing in places", "kind", lambda row, i, draw: row[3] if i % 9 else "", "classification", given="kind"),
    "target_y": target("y at the end", "y", lambda row, i, draw: row[3], "classification"),
    "target_label": target("label at the beginning", "label", lambda row, i, draw: row[3], "classification", at=0),
    "target_class": target("class in the middle", "class", lambda row, i, draw: row[3], "classification", at=1),
    "target_target": target("target, 0 or 1", "target", lambda row, i, draw: int(row[3] == "cat"), "classification"),
    "target_unclear": Messy("nothing says what to predict", plain(), target=None),
    "target_typo": Messy("--target with a slip", plain(), target="Kind"),
    "target_price": target("a target with currency", "price", lambda row, i, draw: f"${float(row[0]) * 1000:,.2f}", "regression"),
    "target_date": target("a target of dates", "when", lambda row, i, draw: day(i, "%Y-%m-%d"), None, given="when"),
    "target_text": target("a target with a new word in each row", "name", lambda row, i, draw: f"name{i}", None, given="name"),
    "target_none": target("a class named None", "risk", lambda row, i, draw: ("None", "Low", "High")[i % 3], "classification", given="risk", says=r"None"),
    "target_2_53": target("a target of two integers above 2^53", "label", lambda row, i, draw: 9007199254740992 + (row[3] == "cat"), None,
                          says=r"more digits than a number can hold"),
    "target_huge": target("a target of 1e300", "y", lambda row, i, draw: f"{row[0]}e300", "regression", says=r"e30|too large"),
    "target_counts": target("a target of few whole numbers", "rings", lambda row, i, draw: round(float(row[0]) / 6), None, given="rings"),
    "target_bad_cell": target("a word in a number target", "price", lambda row, i, draw: "sold" if i == 40 else f"{float(row[0]):.2f}", "regression",
                              given="price"),
    "header_only": Messy("header only", ",".join(NAMES) + "\n", rows=0, refused=True),
    "empty": Messy("no bytes", "", rows=0, target=None, refused=True),
    "newlines_only": Messy("line ends only", "\n\n\n", rows=0, target=None, refused=True),
    "one_row": Messy("one row", plain(1), rows=1),
    "three_rows": Messy("three rows", plain(3), rows=3),
    "one_column": Messy("one column", text([[row[3]] for row in [NAMES, *rows()]]), refused=True),
    "wide": Messy("2,000 columns", wide),
    "long": Messy("200,000 rows", big(200000), rows=200000, columns=NAMES),
    "gzip": Messy("gzip", gzip.compress(plain().encode(), mtime=0), data="data.csv.gz", columns=NAMES),
    "gzip_hidden": Messy("gzip, named .csv", gzip.compress(plain().encode(), mtime=0), columns=NAMES),
    "gzip_two": Messy("two gzip files in one", gzip.compress(plain(100).encode()) + gzip.compress(text(rows(20)).encode()), data="data.csv.gz"),
    "gzip_cut": Messy("gzip, cut off", gzip.compress(plain(5000).encode(), mtime=0)[:-9000], data="data.csv.gz", refused=True, says=r"too early|damaged"),
    "zip": Messy("zip", zipped, data="data.zip"),
    "new_category": Messy("a new word, and missing cells, at predict", unseen, new="new.csv", new_rows=3),
    "new_lacks_column": Messy("a column is missing at predict", lacks_column, new="new.csv", new_rows=2),
    "new_header_only": Messy("a header alone at predict", header_alone, new="new.csv", new_rows=0, says=r"no rows"),
    "new_pipe": Messy("a named pipe at predict", pipe_at_predict, new="new.csv", new_rows=0),
    "new_other_form": Messy("; and other order at predict", other_form, new="new.csv", new_rows=2),
    "parts": Messy("a folder of files, two orders of columns", lambda folder: several(folder, (ORDER, OTHER, ORDER)), data="parts"),
    "parts_glob": Messy("a pattern", lambda folder: several(folder, (ORDER, OTHER, ORDER)), data="parts/*.csv", works=True),
    "parts_differ": Messy("a folder of files with other columns", lambda folder: several(folder, (ORDER, (0, 1, 3), ORDER)), data="parts", rows=None),
    "parts_notes": beside("a README.txt", "README.txt", "Notes on the data.\n", 80),
    "parts_folder": beside("a folder with one more", "2024/part2.csv", part(), 80, says=r"'2024' is left out"),
    "parts_txt": beside("one named .txt", "part2.txt", part(), 80, says=r"part2\.txt' is left out"),
    "parts_tsv": beside("one of tabs", "part2.tsv", part("\t"), says=r"part2\.tsv"),
    "parts_gzip": beside("one of gzip", "part2.csv.gz", gzip.compress(part().encode(), mtime=0)),
    "parts_upper": beside("one named .CSV", "part2.CSV", part()),
    "parts_semicolon": beside("one with semicolons", "part2.csv", part(";")),
    "parts_xlsx": beside("one of Excel", "part2.xlsx", b"PK\3\4" + bytes(200), 80, says=r"part2\.xlsx"),
    "parts_backup": beside("one named .csv.bak", "part2.csv.bak", part(), 80, says=r"part2\.csv\.bak"),
    "parts_decimal": beside("one with decimal commas", "part2.csv", decimal_comma(";"), 200),
    "parts_no_header": beside("one without header", "part2.csv", text(rows(40, seed=2))),
    "train_and_test": Messy("a folder with train.csv and test.csv", train_and_test, data="parts", rows=160, says=r"test\.csv"),
    "parts_empty": Messy("a folder of files, one without rows",
                         lambda folder: several(folder, (ORDER, ORDER, ORDER), ("part9.csv", ",".join(NAMES) + "\n")), data="parts"),
    "parts_mixed": Messy("a folder of csv and jsonl",
                         lambda folder: several(folder, (ORDER, ORDER, ORDER), ("part9.jsonl", '{"length": 3, "kind": "cat"}\n')), data="parts",
                         says=r"part9\.jsonl"),
}
