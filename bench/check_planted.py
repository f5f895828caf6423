"""30 jobs with one fault each, for check_faults.py. FAULTS: name -> (what writes the job, the causes that name the fault).

A cause is that of a finding of `sinew check --json`. Each function takes a Place.
"""
import gzip

from check_place import CNN, FASHION, MLP, clothes, digits, export, real_table

TWO_FILES = "  val: val.csv\n"


def random(seed=1):
    import numpy as np
    return np.random.default_rng(seed)


# ---- the answer among the inputs -----------------------------------------------------------------------------------


def alive(place):
    place.table("train.csv", *real_table("titanic"))
    place.init("train.csv", "survived")


def other_currency(place):
    columns, rows = real_table("diamonds")
    at = columns.index("price")
    place.table("train.csv", columns + ["list_value"], [row + [f"{float(row[at]) * 0.9137 + 12:.2f}"] for row in rows[:6000]])
    place.init("train.csv", "price")


def inverted(place):
    columns, rows = real_table("breast_cancer")
    place.table("train.csv", columns + ["benign_flag"], [row + [str(int(row[-1] == "c0"))] for row in rows])
    place.csv_job("target_")


def sorted_number(place):
    columns, rows = real_table("penguins")
    at = columns.index("species")
    rows = sorted(rows, key=lambda row: row[at])
    rows = [[str(1000 + 3 * i), *row] for i, row in enumerate(rows)]
    order = random().permutation(len(rows))
    place.table("train.csv", ["sample_number", *columns], [rows[i] for i in order])
    place.csv_job("species")


def filled_afterwards(place):
    columns, rows = real_table("titanic")
    at, kept = columns.index("survived"), [i for i, column in enumerate(columns) if column != "alive"]
    wrong = random().random(len(rows)) < 0.02
    rows = [[row[i] for i in kept] + ["ward" if (row[at] == "1") != bool(flip) else "none"] for row, flip in zip(rows, wrong)]
    place.table("train.csv", [columns[i] for i in kept] + ["care_place"], rows)
    place.init("train.csv", "survived")


def sum_of_parts(place):
    draw = random()
    rows = []
    for _ in range(2000):
        warm, workday = draw.normal(15, 8), int(draw.random() < 0.7)
        casual, member = int(draw.poisson(20 + 3 * max(0, warm))), int(draw.poisson(90 + 60 * workday))
        rows.append([f"{warm:.1f}", workday, casual, member, casual + member])
    place.table("train.csv", ["temperature", "workday", "casual", "registered", "rentals"], rows)
    place.csv_job("rentals")


# ---- time and copies -----------------------------------------------------------------------------------------------


def series(count=1200):
    """Rows of a shop: a date, and sales that follow a random walk."""
    import datetime
    draw, level, rows = random(5), 500.0, []
    for day in range(count):
        level += draw.normal(0, 12)
        promotion, warm = int(draw.random() < 0.2), draw.normal(15, 7)
        date = datetime.date(2021, 1, 1) + datetime.timedelta(days=day)
        rows.append([date.isoformat(), promotion, f"{warm:.1f}", f"{level + 25 * promotion + draw.normal(0, 6):.1f}"])
    return ["date", "promotion", "temperature", "sales"], rows


def val_in_the_past(place):
    columns, rows = series()
    place.table("val.csv", columns, rows[:240])
    place.table("train.csv", columns, rows[240:])
    place.csv_job("sales", data=TWO_FILES)


def split_ignores_time(place):
    place.table("train.csv", *series())
    place.csv_job("sales")


def doubled_rows(place):
    columns, rows = real_table("breast_cancer")
    place.table("train.csv", columns, rows + rows[:200])
    place.csv_job("target_")


def test_in_train(place):
    images, labels = clothes(3000)
    place.arrays("train", images[:2500], labels[:2500])
    place.arrays("test", images[2200:], labels[2200:])
    place.array_job(splits=("train", "test"))


# ---- classes and drift ---------------------------------------------------------------------------------------------


def never_predicted(place):
    columns, rows = real_table("diamonds")
    at = [columns.index(name) for name in ("carat", "depth", "table", "x", "y", "z")]
    colour = columns.index("color")
    rows = [[row[i] for i in at] + ["tinted" if row[colour] == "J" else "clear"] for row in rows[:6000]]
    place.table("train.csv", [*(columns[i] for i in at), "colour"], rows)
    place.init("train.csv", "colour")


def moved_column(place):
    columns, rows = real_table("diamonds")
    at = columns.index("depth")
    place.table("train.csv", columns, rows[:4000])
    place.table("val.csv", columns, [[f"{float(cell) + 2:.1f}" if i == at else cell for i, cell in enumerate(row)] for row in rows[4000:5000]])
    place.csv_job("price", rest=MLP, data=TWO_FILES)


def other_unit_in_test(place):
    columns, rows = real_table("penguins")
    at = columns.index("body_mass_g")
    kilograms = [[f"{float(cell) / 1000:.2f}" if i == at and cell else cell for i, cell in enumerate(row)] for row in rows[260:]]
    place.table("train.csv", columns, rows[:260])
    place.table("test.csv", columns, kilograms)
    place.csv_job("species", data="  test: test.csv\n  split: {val: 0.2}\n")


def negative_images(place):
    images, labels = clothes(3000)
    place.arrays("train", images[:2500], labels[:2500])
    place.arrays("val", 255 - images[2500:], labels[2500:])
    place.array_job(splits=("train", "val"), data="")


def other_shares(place):
    columns, rows = real_table("digits")
    rows = sorted(rows, key=lambda row: row[-1] in ("c7", "c8"))  # the end has only these
    place.table("train.csv", columns, rows[:1300] + rows[-100:])
    place.table("val.csv", columns, rows[1300:-100])
    place.csv_job("target_", data=TWO_FILES)


# ---- labels --------------------------------------------------------------------------------------------------------


def shuffled(place):
    images, labels = digits()
    place.arrays("train", images / 16, random().permutation(labels))
    place.array_job()


def one_row_late(place):
    import numpy as np
    with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as file:
        header, labels = file.read(8), np.frombuffer(file.read(), np.uint8)
    (place.folder / "labels").write_bytes(header + np.roll(labels, 1).tobytes())
    place.job(f"data:\n  format: idx\n  train: {{images: {FASHION}/train-images-idx3-ubyte.gz, labels: labels}}\n  split: {{val: 0.1}}\n{CNN}")


def swapped_folders(place):
    images, labels = clothes(3000)
    names = ["shirt", "trousers", "pullover", "dress", "coat", "sandal", "blouse", "sneaker", "bag", "boot"]
    place.pictures("train", images[:2400], [names[i] for i in labels[:2400]])
    place.pictures("val", images[2400:], [sorted(names)[i] for i in labels[2400:]])
    place.job(f"data:\n  format: image_folder\n  image: {{channels: 1}}\n  train: train\n  val: val\n{CNN}")


def other_order_in_test(place):
    images, labels = digits()
    place.arrays("train", images[:1300] / 16, labels[:1300])
    place.arrays("test", images[1300:] / 16, (labels[1300:] + 1) % 10)
    place.array_job(splits=("train", "test"))


# ---- normalisation -------------------------------------------------------------------------------------------------


def raw_pixels(place):
    images, labels = clothes(3000)
    place.arrays("train", images.astype("float32"), labels)
    place.array_job(data="  normalize: none\n  split: {val: 0.2}\n")


def one_large_column(place):
    columns, rows = real_table("wine")
    place.table("train.csv", [*columns, "batch_weight"], [[*row, f"{1e6 * (1 + draw):.0f}"] for row, draw in zip(rows, random().random(len(rows)))])
    place.csv_job("target_", data="  normalize: none\n  split: {val: 0.2}\n")


def only_train_scaled(place):
    images, labels = digits()
    place.arrays("train", images[:1400] / 16, labels[:1400])
    place.arrays("val", images[1400:], labels[1400:])
    place.array_job(splits=("train", "val"), data="")


# ---- training ------------------------------------------------------------------------------------------------------


def frozen_head(place):
    place.arrays("train", *digits())
    place.array_job(rest=CNN.replace("channels: [16, 32]", "channels: [16, 32], freeze: [output*]"))


def rate_100_mlp(place):
    place.table("train.csv", *real_table("digits"))
    place.csv_job("target_", rest=MLP.replace("1e-3", "0.1"))


def rate_100_tabular(place):
    place.table("train.csv", *real_table("breast_cancer"))
    place.init("train.csv", "target_", ("lr: 0.04", "lr: 4"))


def rate_100_cnn(place):
    place.arrays("train", *clothes(6000))
    place.array_job(rest=CNN.replace("1e-3", "0.1"))


def tiny_rate(place):
    place.table("train.csv", *real_table("breast_cancer"))
    place.csv_job("target_", rest=MLP.replace("1e-3", "1e-8"))


def program(place, model):
    place.arrays("train", *digits())
    export(model, (1, 8, 8), place.folder / "model.pt2")
    place.array_job(rest="model: {name: program, file: model.pt2}\noptimizer: {name: adamw, lr: 1e-3}\ntrainer: {max_duration: 20ep, batch_size: 64}\n")


def dead_units(place):
    from torch import nn
    layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    nn.init.constant_(layers[3].bias, -30)
    program(place, layers)


def vanishing(place):
    place.table("train.csv", *real_table("digits"))
    place.csv_job("target_", rest=MLP.replace("hidden: [64, 64]", f"hidden: {[48] * 24}, activation: tanh"))


def softmax_twice(place):
    from torch import nn
    program(place, nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(1)))


FAULTS = {
    "titanic with its column `alive`": (alive, {"target_leak"}),
    "the price in another currency": (other_currency, {"target_leak"}),
    "the label inverted": (inverted, {"target_leak"}),
    "a number that sorts by class": (sorted_number, {"target_leak", "id_leak"}),
    "a column filled in afterwards, 2 % wrong": (filled_afterwards, {"target_leak"}),
    "two columns that add up to the target": (sum_of_parts, {"target_leak", "target_sum"}),
    "val lies in the past of train": (val_in_the_past, {"date_leak"}),
    "a random split of a time series": (split_ignores_time, {"date_leak"}),
    "200 rows doubled before the split": (doubled_rows, {"duplicates", "rows_repeat"}),
    "test images that are in train": (test_in_train, {"duplicates"}),
    "a 5 % class never predicted": (never_predicted, {"class_collapse"}),
    "a column moved by 2 in val": (moved_column, {"drift"}),
    "a column in another unit in test": (other_unit_in_test, {"drift"}),
    "val has negatives of the images": (negative_images, {"drift"}),
    "other shares of the classes in val": (other_shares, {"class_shares_differ"}),
    "shuffled labels": (shuffled, {"labels_unrelated"}),
    "labels shifted by one row": (one_row_late, {"labels_unrelated"}),
    "folders of val in another order": (swapped_folders, {"val_labels_differ"}),
    "labels of test in another order": (other_order_in_test, {"test_labels_differ"}),
    "pixels of 0 to 255, not normalised": (raw_pixels, {"inputs_unnormalised"}),
    "a column of millions, not normalised": (one_large_column, {"inputs_unnormalised"}),
    "train scaled, val not": (only_train_scaled, {"drift"}),
    "a frozen head": (frozen_head, {"frozen_head", "frozen"}),
    "lr x 100, mlp": (rate_100_mlp, {"learning_rate_too_large", "diverged"}),
    "lr x 100, tabular": (rate_100_tabular, {"learning_rate_too_large", "diverged"}),
    "lr x 100, cnn": (rate_100_cnn, {"learning_rate_too_large", "diverged"}),
    "lr 1e-8": (tiny_rate, {"learning_rate_too_small"}),
    "a dead layer of relu": (dead_units, {"dead_activation", "output_constant"}),
    "24 layers of tanh": (vanishing, {"vanishing_gradient"}),
    "softmax before the cross-entropy": (softmax_twice, {"outputs_are_probabilities"}),
}
