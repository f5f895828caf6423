"""Compares how fast images become batches with the usual PyTorch pipelines, and trains with more data than memory."""
import os
import pathlib
import re
import resource
import statistics
import subprocess
import time

import contestants
from figures import figure

SIDE, BATCH, CROP = 224, 64, 28
PHOTOS, DISTINCT = 2000, 200  # files, and different photos among them
GIGABYTE = 10**9


def make_photos(folder):
    """JPEGs of 500 x 375 with smooth shapes, edges and grain, from a generator with a fixed seed."""
    import numpy as np
    from PIL import Image
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:375, 0:500]
    for i in range(DISTINCT):
        waves = [np.sin(x * rng.uniform(0.01, 0.1) + rng.uniform(0, 6)) * np.cos(y * rng.uniform(0.01, 0.1)) for _ in range(3)]
        edges = ((x // rng.integers(20, 60) + y // rng.integers(20, 60)) % 3 == 0) * 40
        pixels = np.stack([120 + 50 * wave + edges for wave in waves], 2) + rng.normal(0, 6, (375, 500, 3))
        place = folder / f"class{i % 10}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{i:05}.jpg", quality=90)
        for copy in range(i + DISTINCT, PHOTOS, DISTINCT):
            (place / f"{copy:05}.jpg").hardlink_to(place / f"{i:05}.jpg")


def photos_in(folder):
    photos = pathlib.Path(folder) / "photographs"
    if not photos.exists():
        make_photos(photos)
    return photos


def on_one_core(words, seconds):
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=seconds + contestants.PATIENCE,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def race(ours, theirs, what, target, quick):
    rounds, seconds = (3, 6) if quick else (7, 10)
    loop = [contestants.BIN / "input_loop", *ours, BATCH, seconds]
    peer = [contestants.PYTHON, contestants.ROOT / "bench/input_peer.py", *theirs, BATCH, seconds]
    rates = {"ours": [], "theirs": []}
    for turn in range(rounds):
        for name, words in [("ours", loop), ("theirs", peer)][::1 if turn % 2 == 0 else -1]:
            rates[name].append(on_one_core(words, seconds))
    ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates["theirs"]))
    return [figure(what, ratio, target, detail=f"{statistics.median(rates['ours']):,.0f} against "
                   f"{statistics.median(rates['theirs']):,.0f} images/s; {rounds} rounds of {seconds} s")]


def photos(folder, quick):
    path = photos_in(folder)
    return race([path, SIDE, CROP], ["photos", path, SIDE, CROP],
                "JPEGs of 500 x 375, cropped and flipped: torchvision with DataLoader", 2.0, quick)


def pixels(folder, quick):
    """Packs the photos as pixels, and writes the same rows into one .npy for the peer."""
    import numpy as np
    folder = pathlib.Path(folder)
    job, packed, rows = folder / "pixels.yaml", folder / "packed", folder / "rows.npy"
    if not packed.exists():
        job.write_text(f"name: pixels\nmodel: {{name: cnn}}\ndata: {{format: image_folder, train: {photos_in(folder)}, image: {{size: [{SIDE}, {SIDE}]}}}}\n")
        subprocess.run([contestants.SINEW, "data", "pack", job, packed, "--decode"], check=True, capture_output=True, timeout=600)
        np.save(rows, np.random.default_rng(1).integers(0, 256, (PHOTOS, 3, SIDE, SIDE), np.uint8))
    return race([packed, SIDE, 0], ["pixels", rows, SIDE, 0],
                "Packed pixels: rows of one file in memory (np.memmap), converted by PyTorch in batches", 1.0, quick)


def tar_header(name, size):
    header = bytearray(512)
    for at, text in ((0, name), (100, "0000644"), (108, "0000000"), (116, "0000000"), (124, f"{size:011o}"), (136, "07000000000"),
                     (148, " " * 8), (156, "0"), (257, "ustar\00000")):
        header[at:at + len(text)] = text.encode()
    header[148:155] = f"{sum(header):06o}\0".encode()
    return bytes(header)


def make_holes(folder, total):
    """Tars of samples whose pixels are holes in the file, `total` bytes together. Returns the number of samples."""
    import io
    import numpy as np
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "|u1", "fortran_order": False, "shape": (3, SIDE, SIDE)})
    start, size = array.getvalue(), len(array.getvalue()) + 3 * SIDE * SIDE
    stride = 512 + -(-size // 512) * 512 + 1024
    in_tar, count = 256 * 10**6 // stride, -(-total // stride)
    folder.mkdir()
    for first in range(0, count, in_tar):
        samples = range(first, min(first + in_tar, count))
        with open(folder / f"train-{first // in_tar:06}.tar", "wb") as tar:
            for place, i in enumerate(samples):
                tar.seek(place * stride)
                tar.write(tar_header(f"{i:08}.npy", size) + start)
                tar.seek(place * stride + stride - 1024)
                tar.write(tar_header(f"{i:08}.cls", 1) + str(i % 10).encode())
            tar.truncate(len(samples) * stride + 1024)
    return count


def peak_of(process):
    """Waits for the end of the process. Returns the largest peak of the resident memory of it and of its descendants."""
    peaks, began = {}, time.monotonic()
    while process.poll() is None and time.monotonic() - began < 900:
        family = {process.pid}
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            pid, parent = (int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE).group(1)) for key in ("Pid", "PPid"))
            if pid in family or parent in family:
                family.add(pid)
                found = re.search(r"^VmHWM:\s+(\d+) kB", text, re.MULTILINE)
                peaks[pid] = max(peaks.get(pid, 0), int(found.group(1)) * 1024 if found else 0)
        time.sleep(0.1)
    return sum(peaks.values())


def memory(folder, quick):
    folder, total = pathlib.Path(folder), 50 * GIGABYTE
    samples = make_holes(folder / "holes", total)
    steps = 60 if quick else 200
    job = folder / "holes.yaml"
    job.write_text(f"""name: holes
model: {{name: cnn, channels: [4]}}
data: {{format: webdataset, train: {folder}/holes, image: {{size: [{SIDE}, {SIDE}]}}, normalize: none}}
trainer: {{max_duration: {steps}st, batch_size: 64, precision: fp32}}
checkpoint: {{interval: never}}
""")
    began = time.monotonic()
    errors = folder / "holes.err"  # a file, because nobody reads a pipe while peak_of() waits, and a full one blocks
    with errors.open("w") as stderr:
        process = subprocess.Popen([contestants.SINEW, "train", job, "--run-dir", folder / "holes-run"], stdout=subprocess.DEVNULL,
                                   stderr=stderr, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTE, GIGABYTE)))
    try:
        peak = peak_of(process)
        process.wait(60)
    finally:
        process.kill()  # does nothing if it has ended
        process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"sinew train ended with {process.returncode}:\n{errors.read_text(errors='replace')[-2000:]}")
    return [figure("Peak memory of a training on 50 GB of packed pixels, in GB", peak / GIGABYTE, 1.0, low=True,
                   detail=f"{samples:,} samples, {steps} steps of 64 in {time.monotonic() - began:.0f} s with the SHA-256 of all bytes for data.json; its own memory is limited to 1 GB "
                          "(RLIMIT_DATA), the peak also counts pages of the program's files")]
