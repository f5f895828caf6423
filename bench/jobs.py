"""Defines the jobs that contestants train. Writes job files for Sinew, and makes the data sets that do not exist yet.

All contestants read the same files, or hold tensors of the same shapes.
"""
import dataclasses
import gzip
import pathlib

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
# There are PHOTOS JPEGs with sides of PHOTO_SIDE pixels, which are decoded and scaled to IMAGE_SIDE.
PHOTOS, PHOTO_SIDE, IMAGE_SIDE = 2000, 160, 64
ROWS, COLUMNS, CLASSES = 200_000, 16, 4

IDX = f"""  format: idx
  train: {{images: {FASHION}/train-images-idx3-ubyte.gz, labels: {FASHION}/train-labels-idx1-ubyte.gz}}"""
JPEG = """  format: image_folder
  train: {folder}/photos
  image: {size: [%d, %d]}
  augment: {crop_padding: 4, flip: 0.5}""" % (IMAGE_SIDE, IMAGE_SIDE)
CSV = """  format: csv
  train: {folder}/table.csv
  task: classification
  columns: {target: y}"""


@dataclasses.dataclass(frozen=True)
class Job:
    title: str
    kind: str  # the name of the job in bare_loop and peers.py
    model: str
    data: str
    batch: int
    log_every: int  # steps between two lines of metrics: a few a second


JOBS = {
    "mlp": Job("Fashion-MNIST MLP 784-256-10, batch 256", "mlp", "{name: mlp, hidden: [256]}", IDX, 256, 20),
    "mlp64": Job("Fashion-MNIST MLP 784-256-10, batch 64", "mlp", "{name: mlp, hidden: [256]}", IDX, 64, 50),
    "cnn": Job("Fashion-MNIST CNN 32-64, batch 128", "cnn", "{name: cnn, channels: [32, 64]}", IDX, 128, 2),
    "resnet": Job(f"ResNet-18 on {IMAGE_SIDE}x{IMAGE_SIDE} JPEGs, cropped and flipped, batch 64", "resnet",
                  "{name: resnet18, stem: imagenet}", JPEG, 64, 1),
    "csv": Job(f"CSV of {ROWS:,} rows, MLP {COLUMNS}-64-64-{CLASSES}, batch 256", "csv", "{name: mlp, hidden: [64, 64]}", CSV, 256, 50),
    # 4.1 million parameters, which take 49 MB together with AdamW's two averages.
    "heavy": Job("Fashion-MNIST MLP 784-2048-1200-10, batch 384", "heavy", "{name: mlp, hidden: [2048, 1200]}", IDX, 384, 1),
}


def write_job(folder, name, precision="fp32"):
    """Writes the job file of a Sinew contestant. The run never ends by itself: give it a budget, or stop it."""
    job, path = JOBS[name], pathlib.Path(folder) / f"{name}-{precision}.yaml"
    path.write_text(f"""name: bench
model: {job.model}
data:
{job.data.replace("{folder}", str(folder))}
trainer: {{max_duration: 100000ep, batch_size: {job.batch}, precision: {precision}, eval_interval: 100000ep}}
optimizer: {{name: adamw, lr: 1e-3, weight_decay: 0.01}}
checkpoint: {{interval: never}}
logging: {{interval: {job.log_every}st}}
""")
    return path


def read_idx(name, offset):
    import numpy as np
    with gzip.open(FASHION / name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def make_data(folder, name):
    """Writes the data set of a job if it does not exist, from Fashion-MNIST or from a generator with a fixed seed."""
    folder = pathlib.Path(folder)
    if name == "resnet" and not (folder / "photos").exists():
        make_photos(folder / "photos")
    if name == "csv" and not (folder / "table.csv").exists():
        make_table(folder / "table.csv")


def make_photos(folder):
    from PIL import Image
    images = read_idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = read_idx("train-labels-idx1-ubyte.gz", 8)
    for i in range(PHOTOS):
        place = folder / f"class{labels[i]}"
        place.mkdir(parents=True, exist_ok=True)
        big = Image.fromarray(images[i]).resize((PHOTO_SIDE, PHOTO_SIDE), Image.BICUBIC)
        big.convert("RGB").save(place / f"{i:05}.jpg", quality=90)


def make_table(path):
    import numpy as np
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, COLUMNS))
    y = np.argmax(x @ rng.normal(size=(COLUMNS, CLASSES)), axis=1)
    header = ",".join([f"x{i}" for i in range(COLUMNS)] + ["y"])
    np.savetxt(path, np.column_stack([x, y]), fmt=["%.6f"] * COLUMNS + ["%d"], delimiter=",", header=header, comments="")
