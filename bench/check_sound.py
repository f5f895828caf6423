"""20 jobs without a fault, for check_faults.py. SOUND: name -> what writes the job; it takes a Place."""
import datetime

from check_place import CNN, FASHION, data_folder, digits, real_table
from check_planted import random, series
from contestants import ROOT


def proposed(name, target="target_"):
    def write(place):
        place.table("train.csv", *real_table(name))
        place.init("train.csv", target)
    return write


def titanic(place):
    columns, rows = real_table("titanic")
    kept = [i for i, column in enumerate(columns) if column != "alive"]
    place.table("train.csv", [columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
    place.init("train.csv", "survived")


def example(place):
    place.job((ROOT / "examples/fashion-mnist.yaml").read_text().replace("name: fashion-mnist\n", ""))


def sentences(place):
    for split, part in (("train", "train"), ("val", "dev")):
        lines = (data_folder() / f"sst2/{part}.tsv").read_text(encoding="utf-8").splitlines()
        place.table(f"{split}.csv", ["review", "good"], [line.rsplit("\t", 1) for line in lines])
    place.csv_job("good", data="  val: val.csv\n")


def word_program(place):
    place.python(ROOT / "examples/programs/text_classifier.py", data_folder() / "sst2")
    place.job((ROOT / "examples/programs/text-classifier.yaml").read_text().replace("name: text-classifier\n", ""))


def pictures(place):
    images, labels = digits()
    place.pictures("photos", (images * 15).astype("uint8"), [f"digit{label}" for label in labels])
    place.init("photos")


def arrays(place):
    images, labels = digits()
    place.arrays("train", images, labels)
    place.array_job(rest=CNN.replace("{name: adamw, lr: 1e-3}", "{name: sgd, lr: 0.05, momentum: 0.9}"))


def three_files(place):
    columns, rows = real_table("breast_cancer")
    for split, part in (("train", rows[:369]), ("val", rows[369:469]), ("test", rows[469:])):
        place.table(f"{split}.csv", columns, part)
    place.csv_job("target_", data="  val: val.csv\n  test: test.csv\n")


def dated(place):
    place.table("train.csv", *series())
    place.init("train.csv", "sales")


def dated_without_trend(place):
    draw, rows = random(9), []
    for _ in range(1500):
        size, rooms = draw.normal(80, 20), int(draw.integers(1, 6))
        date = datetime.date(2022, 1, 1) + datetime.timedelta(days=int(draw.integers(0, 700)))
        rows.append([date.isoformat(), f"{size:.1f}", rooms, f"{size * 3 + rooms * 20 + draw.normal(0, 15):.1f}"])
    place.table("train.csv", ["sold_at", "size", "rooms", "price"], rows)
    place.csv_job("price")


def rare_class(place):
    columns, rows = real_table("digits")
    rare = [row for row in rows if row[-1] == "c3"][:80]
    rows = [[*row[:-1], "three" if row[-1] == "c3" else "other"] for row in [row for row in rows if row[-1] != "c3"] + rare]
    place.table("train.csv", columns, rows)
    place.init("train.csv", "target_")


SOUND = {
    "iris": proposed("iris"), "wine": proposed("wine"), "digits": proposed("digits"), "breast cancer": proposed("breast_cancer"),
    "diabetes": proposed("diabetes"), "titanic without `alive`": titanic, "penguins": proposed("penguins", "species"),
    "mpg": proposed("mpg", "mpg"), "diamonds": proposed("diamonds", "price"),
    "fashion-mnist": lambda place: place.init(FASHION), "examples/fashion-mnist.yaml": example,
    "Shakespeare": lambda place: place.init(next((data_folder() / "text").iterdir())),
    "sentences in two files": sentences, "examples/programs/text-classifier.yaml": word_program,
    "digits as pictures": pictures, "digits as arrays, sgd": arrays, "breast cancer in three files": three_files,
    "a time series, split by its date": dated, "dates without a trend, split at random": dated_without_trend,
    "a class of 5 % that can be learned": rare_class,
}
