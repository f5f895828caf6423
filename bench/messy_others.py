"""Data that is not a table of separated cells, or not what its name says, for messy_files.py. OTHERS: name -> Messy."""
import io
import json
import os
import pickle
import random
import sqlite3
import struct
import zipfile

from messy_place import COUNT, NAMES, Messy, plain, rows


def records():
    return [{"length": float(row[0]), "weight": float(row[1]), "colour": row[2], "kind": row[3]} for row in rows()]


def lines_of(change=lambda record, i: record):
    return "".join(json.dumps(change(record, i)) + "\n" for i, record in enumerate(records()))


def with_line(at, line):
    lines = lines_of().splitlines()
    lines.insert(at, line)
    return "\n".join(lines) + "\n"


def lacks_keys(record, i):
    return {key: value for key, value in record.items() if i % 4 or key != "weight"}


def xlsx():
    """A workbook with one sheet, as far as a reader looks."""
    out = io.BytesIO()
    cells = "".join("<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>" for row in [NAMES, *rows()])
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    return out.getvalue()


def framed(begin, end=b""):
    """Bytes of a binary format, whose beginning and end are its own."""
    return begin + random.Random(9).randbytes(4000) + end


def zstd(data):
    """A frame of one raw block, with the size of its content in 4 bytes."""
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def database(folder):
    with sqlite3.connect(folder / "data.csv") as base:
        base.execute("create table animals (length, weight, colour, kind)")
        base.executemany("insert into animals values (?, ?, ?, ?)", rows())
    base.close()


def array(save):
    """Writes data.npy: numbers, and the kind as the last one."""
    def write(folder):
        import numpy as np
        values = np.array([[float(row[0]), float(row[1]), float(row[3] == "cat")] for row in rows()])
        save(np, folder, values)
    return write


def save_pair(np, folder, values, inputs=float, labels=int):
    (folder / "data").mkdir()
    np.save(folder / "data/train_images.npy", values[:, :2].astype(inputs))
    np.save(folder / "data/train_labels.npy", values[:, 2].astype(labels))


def structured(np, folder, values):
    kinds = np.dtype([("length", "f8"), ("weight", "f4"), ("kind", "U3")])
    np.save(folder / "data.npy", np.array([(row[0], row[1], "cat" if row[2] else "dog") for row in values], kinds))


def not_finite(np, folder, values):
    values[7, 0], values[9, 1] = np.nan, np.inf
    np.savez(folder / "data.npz", x=values[:, :2].astype(np.float32), y=values[:, 2].astype(np.int64))


def minus_one(np, folder, values):
    np.savez(folder / "data.npz", x=values[:, :2].astype(np.float32), y=(2 * values[:, 2] - 1).astype(np.int64))


def one_shorter(np, folder, values):
    np.savez(folder / "data.npz", x=values[:, :2].astype(np.float32), y=values[1:, 2].astype(np.int64))


def arrays(x="x", y="y", inputs="float32", labels="int64"):
    return array(lambda np, folder, values: np.savez(folder / "data.npz", **{x: values[:, :2].astype(inputs), y: values[:, 2].astype(labels)}))


def arrow_table():
    import pyarrow as pa
    return pa.table({name: [record[name] for record in records()] for name in NAMES})


def parquet(folder):
    import pyarrow.parquet
    pyarrow.parquet.write_table(arrow_table(), folder / "data.parquet")


def feather(folder):
    import pyarrow.feather
    pyarrow.feather.write_feather(arrow_table(), folder / "data.feather")


def texts(folder):
    draw = random.Random(5)
    for kind, words in (("calm", ["lies", "sleeps", "rests"]), ("wild", ["jumps", "runs", "bites"])):
        (folder / "texts" / kind).mkdir(parents=True)
        for i in range(40):
            (folder / "texts" / kind / f"{i}.txt").write_text(" ".join(draw.choice(words) for _ in range(12)) + "\n")


def fifo(folder):
    os.mkfifo(folder / "data.csv")


def looped(folder):
    (folder / "data.csv").symlink_to(folder / "other.csv")
    (folder / "other.csv").symlink_to(folder / "data.csv")


def folder_with_loop(folder):
    (folder / "parts").mkdir()
    (folder / "parts/part0.csv").write_text(plain())
    (folder / "parts/again").symlink_to(folder / "parts")


def gone(folder):
    (folder / "data.csv").symlink_to(folder / "was_here.csv")


def wrong(what, content, data="data.csv", **more):
    return Messy(what, content, data=data, refused=True, rows=None, **more)


PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body><p>Please, sign in</p></body></html>\n"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a2146' * 8}\nsize 12345\n"
LIBSVM = "".join(f"{int(row[3] == 'cat')} 1:{row[0]} 2:{row[1]}\n" for row in rows())
ARFF = "@relation animals\n@attribute length numeric\n@attribute weight numeric\n@attribute colour {red,blue,green}\n" \
       "@attribute kind {cat,dog}\n@data\n" + "".join(",".join(row) + "\n" for row in rows())

OTHERS = {
    "jsonl": Messy("", lines_of(), data="data.jsonl", columns=NAMES),
    "jsonl_nested": Messy("objects in objects", lines_of(lambda record, i: {**record, "size": {"tail": i, "ear": i % 7}}), data="data.jsonl"),
    "jsonl_arrays": Messy("arrays in objects", lines_of(lambda record, i: {**record, "tags": ["a", "b"][: i % 3]}), data="data.jsonl"),
    "jsonl_missing": Messy("keys that some lines lack", lines_of(lacks_keys), data="data.jsonl", columns=NAMES, kinds={"weight": "number"}),
    "jsonl_mixed": Messy("numbers as words in places", lines_of(lambda record, i: {**record, "weight": str(i) if i % 3 else i}), data="data.jsonl",
                         columns=NAMES, kinds={"weight": "number"}),
    "jsonl_words": Messy("numbers as words", lines_of(lambda record, i: {**record, "weight": str(record["weight"])}), data="data.jsonl", columns=NAMES,
                         kinds={"weight": "number"}),
    "jsonl_late_key": Messy("a key that only the last line has", lines_of(lambda record, i: {**record, "old": 1} if i == COUNT - 1 else record),
                            data="data.jsonl", columns=(*NAMES, "old")),
    "jsonl_blank": Messy("blank lines", with_line(50, "") + "\n\n", data="data.jsonl", columns=NAMES),
    "jsonl_cut": Messy("a last line that is cut off", lines_of()[:-20], data="data.jsonl"),
    "jsonl_comma": Messy("commas between lines", lines_of().replace("}\n", "},\n"), data="data.jsonl"),
    "jsonl_bom": Messy("byte order mark", "\ufeff" + lines_of(), data="data.jsonl", columns=NAMES),
    "jsonl_nan": Messy("NaN, as Python writes it", lines_of(lambda record, i: {**record, "weight": float("nan")} if i == 9 else record),
                       data="data.jsonl", columns=NAMES, kinds={"weight": "number"}, says=r"NaN"),
    "jsonl_twice": Messy("a key twice", with_line(50, '{"length": 1, "length": 2, "weight": 3, "colour": "red", "kind": "cat"}'),
                         data="data.jsonl", rows=121),
    "jsonl_bool": Messy("true and false", lines_of(lambda record, i: {**record, "tame": i % 3 == 0}), data="data.jsonl", kinds={"tame": "boolean"}),
    "jsonl_ndjson": Messy("named .ndjson", lines_of(), data="data.ndjson", columns=NAMES),
    "json_array": Messy("a JSON array", json.dumps(records()), data="data.json", says=r"JSON"),
    "json_array_pretty": Messy("a JSON array over many lines", json.dumps(records(), indent=2), data="data.json", says=r"JSON"),
    "json_columns": Messy("a JSON object of columns", json.dumps({name: [row[i] for row in rows()] for i, name in enumerate(NAMES)}), data="data.json",
                          says=r"JSON"),
    "jsonl_named_json": Messy("lines of JSON, named .json", lines_of(), data="data.json", columns=NAMES, works=True),
    "jsonl_named_csv": Messy("lines of JSON, named .csv", lines_of(), columns=NAMES, says=r"JSON"),
    "csv_named_tsv": Messy("commas, named .tsv", plain(), data="data.tsv", columns=NAMES),
    "csv_named_txt": Messy("a table, named .txt", plain(), data="data.txt", columns=NAMES, works=True),
    "csv_without_ending": Messy("a table, without ending", plain(), data="data", columns=NAMES, works=True),
    "csv_upper": Messy("named DATA.CSV, with a space", plain(), data="MY DATA.CSV", columns=NAMES, works=True),
    "csv_unicode_name": Messy("named daten-größe 🎨.csv", plain(), data="daten-größe 🎨.csv", columns=NAMES, works=True),
    "csv_brackets": Messy("named (1) data.csv, as a browser does", plain(), data="(1) data.csv", columns=NAMES, works=True),
    "csv_long_name": Messy("a name of 80 letters", plain(), data="d" * 80 + ".csv", columns=NAMES, works=True),
    "csv_dollar": Messy("a target named ${PRICE}", plain().replace("kind", "${PRICE}", 1), target="${PRICE}", works=True),
    "csv_two_dollars": Messy("a target named price $$", plain().replace("kind", "price $$", 1), target="price $$", works=True),
    "xlsx": wrong("Excel", xlsx(), data="data.xlsx"),
    "xlsx_csv": wrong("Excel, named .csv", xlsx(), says=r"Excel"),
    "xls_csv": wrong("old Excel, named .csv", framed(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")),
    "parquet_table": Messy("a table of Parquet", parquet, data="data.parquet", columns=NAMES, works=True),
    "feather_table": Messy("a table of Feather", feather, data="data.feather", columns=NAMES, works=True),
    "parquet": wrong("damaged Parquet", framed(b"PAR1", b"PAR1"), data="data.parquet"),
    "parquet_csv": wrong("Parquet, named .csv", framed(b"PAR1", b"PAR1")),
    "feather": wrong("Feather (Arrow)", framed(b"ARROW1\0\0", b"ARROW1"), data="data.feather"),
    "png_csv": wrong("a picture, named .csv", framed(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")),
    "pdf_csv": wrong("a PDF, named .csv", framed(b"%PDF-1.7\n")),
    "pickle": wrong("pickle", pickle.dumps(records()), data="data.pkl"),
    "pickle_csv": wrong("pickle, named .csv", pickle.dumps(records())),
    "json_csv": Messy("a JSON array, named .csv", json.dumps(records(), indent=1), says=r"JSON"),
    "html_csv": wrong("a page to sign in, named .csv", PAGE, says=r"HTML|web page"),
    "lfs_csv": wrong("a pointer of Git LFS, named .csv", POINTER, says=r"Git LFS"),
    "sqlite_csv": wrong("a database, named .csv", database, says=r"SQLite"),
    "hdf5": wrong("HDF5", framed(b"\x89HDF\r\n\x1a\n"), data="data.h5"),
    "zstd": Messy("zstd", zstd(plain().encode()), data="data.csv.zst", columns=NAMES, works=True),
    "xz": wrong("xz", __import__("lzma").compress(plain().encode()), data="data.csv.xz", says=r"with xz|xz -d"),
    "bz2": wrong("bzip2", __import__("bz2").compress(plain().encode()), data="data.csv.bz2", says=r"bzip2"),
    "libsvm": wrong("LIBSVM", LIBSVM, data="data.libsvm"),
    "arff": Messy("ARFF", ARFF, data="data.arff"),
    "npy_float64": Messy("float64, target in the last column", array(lambda np, folder, values: np.save(folder / "data.npy", values)),
                         data="data.npy", target=None),
    "npy_pair": Messy("float64 and int64", array(save_pair), data="data", target=None, new="data/train_images.npy"),
    "npy_int64": Messy("inputs of int64", array(lambda np, folder, values: save_pair(np, folder, values, int)), data="data", target=None,
                       new="data/train_images.npy"),
    "npy_structured": Messy("structured", array(structured), data="data.npy", target=None),
    "npy_object": Messy("objects", array(lambda np, folder, values: np.save(folder / "data.npy", np.array(rows(), object), allow_pickle=True)),
                        data="data.npy", target=None, refused=True),
    "npy_cut": Messy("cut off", array(lambda np, folder, values: (np.save(folder / "data.npy", values), os.truncate(folder / "data.npy", 900))),
                     data="data.npy", target=None, refused=True),
    "npz": Messy("x and y", arrays(), data="data.npz", target=None),
    "npz_names": Messy("X_train and y_train", arrays("X_train", "y_train"), data="data.npz", target=None),
    "npz_other_names": Messy("features and answer", arrays("features", "answer"), data="data.npz", target=None),
    "npz_float64": Messy("inputs of float64", arrays(inputs="float64"), data="data.npz", target=None),
    "npz_minus_one": Messy("labels -1 and 1", array(minus_one), data="data.npz", target=None, says="some targets are negative"),
    "npz_float_labels": Messy("labels 0.0 and 1.0", arrays(labels="float32"), data="data.npz", target=None, says="2 classes"),
    "npz_words": Messy("labels of words", arrays(labels="U3"), data="data.npz", target=None),
    "npz_not_finite": Messy("nan and inf", array(not_finite), data="data.npz", target=None),
    "npz_shorter": Messy("a label too few", array(one_shorter), data="data.npz", target=None, refused=True),
    "texts": Messy("a folder of texts for each class", texts, data="texts", target=None, rows=80),
    "fifo": wrong("a named pipe", fifo, target=None),
    "link_loop": wrong("links that name each other", looped, target=None),
    "link_broken": wrong("a link to nothing", gone, target=None, says=r"link"),
    "parts_loop": Messy("a folder with a link to itself", folder_with_loop, data="parts"),
    "no_such_file": wrong("no such file", lambda folder: None, data="date.csv", target=None),
    "empty_folder": wrong("a folder without files", lambda folder: (folder / "data").mkdir(), data="data", target=None, says=r"empty|no file"),
}
