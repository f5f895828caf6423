"""Compares Sinew's augmentation with torchvision's, given the same parameters.

    python tests/augment/torchvision_check.py build/plain/bin/data_test [--freeze]

The test program writes images, drawn parameters and results. This script repeats the augmentations with
torchvision.transforms.v2.functional on float tensors and prints the largest difference of each kind. Exit code 1 if a
difference exceeds 1e-4, or if the noise is not distributed like torchvision's. Needs torch, torchvision and numpy. A
torchvision that was built for another torch works, too, because its compiled operators are not used.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch

# The import of torchvision needs the schemas of these operators. They are declared here, so that the import also works
# if the compiled operators of torchvision do not load.
LIBRARY = torch.library.Library("torchvision", "DEF")
for schema in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
               "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
    try:
        LIBRARY.define(schema)
    except RuntimeError:
        pass

import torchvision  # noqa: E402
from torchvision.transforms import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional  # noqa: E402

LIMIT = 1e-4


def affine(image, angle, translate, scale):
    return functional.affine(image, angle=angle, translate=translate, scale=scale, shear=[0.0, 0.0],
                             interpolation=InterpolationMode.BILINEAR)


def expected(image, case):
    """Applies all augmentations but noise, with torchvision."""
    channels, height, width = image.shape
    if case["padding"]:
        padding = case["padding"]
        padded = functional.pad(image, [padding] * 4)
        image = functional.crop(padded, padding + case["crop_y"], padding + case["crop_x"], height, width)
    if case["flip"]:
        image = functional.horizontal_flip(image)
    if case["angle"] or case["translate_x"] or case["translate_y"] or case["scale"] != 1:
        image = affine(image, case["angle"], [case["translate_x"], case["translate_y"]], case["scale"])
    return image


def kind(case):
    if case["noise"]:
        return "noise"
    if case["padding"]:
        return "crop"
    if case["scale"] != 1:
        return "rotate+translate+scale"
    return "rotate" if case["angle"] else "flip"


def noise_is_alike(ours, clean, deviation):
    """Compares mean and standard deviation of Sinew's noise with those of torchvision's noise on the same image. Both
    clip pixels."""
    theirs = functional.gaussian_noise(clean, mean=0.0, sigma=deviation, clip=True)
    a, b = (ours - clean).double(), (theirs - clean).double()
    n = a.numel()
    near_mean = abs(a.mean() - b.mean()) < 6 * deviation / n ** 0.5
    near_deviation = abs(a.std() - b.std()) < 6 * deviation / n ** 0.5
    return bool(near_mean and near_deviation and ours.min() >= 0 and ours.max() <= 1)


def read_cases(folder):
    floats = numpy.fromfile(folder / "pixels.f32", dtype=numpy.float32)
    place = 0
    for line in (folder / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        shape = case["channels"], case["height"], case["width"]
        size = shape[0] * shape[1] * shape[2]
        image, result = (torch.from_numpy(floats[place + i * size:place + (i + 1) * size].reshape(shape).copy()) for i in (0, 1))
        place += 2 * size
        yield case, image, result
    assert place == floats.size


def main():
    if "--freeze" in sys.argv:
        ramp = torch.arange(20, dtype=torch.float32).reshape(1, 4, 5) / 20
        print(", ".join(f"{v:.6f}f" for v in affine(ramp, 25.0, [1, -1], 1.3).flatten().tolist()))
        return 0
    torch.manual_seed(0)
    print("torch", torch.__version__, "torchvision", torchvision.__version__)
    largest, count, failures = {}, {}, 0
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([os.path.abspath(sys.argv[1]), "--gtest_filter=AugmentDump.*"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SINEW_AUGMENT_DUMP": name})
        for case, image, result in read_cases(pathlib.Path(name)):
            clean = expected(image, case)
            which = kind(case)
            count[which] = count.get(which, 0) + 1
            if which == "noise":
                failures += not noise_is_alike(result, clean, case["noise"])
                continue
            difference = float((result - clean).abs().max())
            largest[which] = max(largest.get(which, 0.0), difference)
            failures += difference > LIMIT
    for which in sorted(count):
        print(f"{which}: {count[which]} cases, " + (f"largest difference {largest[which]:.2e}" if which in largest else "moments alike"))
    print("FAILED" if failures else "ok", failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
