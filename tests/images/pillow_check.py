"""Compares Sinew's image decoders with Pillow, on files of every format that Pillow writes.

    python tests/images/pillow_check.py build/release/bin/data_test

Pillow's side is ImageOps.exif_transpose(image).convert("RGB"). The pixels must be equal, except for lossy JPEG and WebP,
and for CMYK and 16 bits, which the two programs round differently. Exit code 1 if a file differs.
"""
import io
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
from PIL import Image, ImageOps

ORIENTATION = 0x0112


def picture(mode, seed, size=(37, 22)):
    """Smooth waves with some noise, so that lossy formats keep them roughly."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:size[1], 0:size[0]]
    planes = [128 + 90 * numpy.sin(x / (5 + c) + c) * numpy.cos(y / (6 + c)) + random.normal(0, 3, x.shape) for c in range(4)]
    stack = numpy.clip(numpy.stack(planes, -1), 0, 255).astype("uint8")
    if mode in ("1", "L", "P"):
        grey = Image.fromarray(stack[..., 0])
        return Image.fromarray(stack[..., :3]).quantize(200) if mode == "P" else grey.convert(mode)
    if mode == "I;16":
        return Image.fromarray(stack[..., 0].astype("uint16") * 257 // 3)
    channels = {"LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    return Image.fromarray(stack[..., :channels].copy(), mode)


def exif(orientation):
    data = Image.Exif()
    data[ORIENTATION] = orientation
    return data


def rle8(image):
    """A BMP with runs, literal indices, a move and an early end of a row, which Pillow reads but does not write."""
    width, height = image.size
    rows = numpy.asarray(image)[::-1]
    data = b""
    for number, row in enumerate(rows):
        if number == 3:
            data += bytes([0, 2, 4, 0])  # skips four pixels
            row = row[4:]
        elif number == 5:
            row = row[:9]
        place = 0
        while place < len(row):
            piece = row[place:place + 6].tobytes()
            data += bytes([0, len(piece)]) + piece + b"\0" * (len(piece) % 2) if len(piece) > 2 else b"".join(
                bytes([1, value]) for value in piece)
            place += 6
        data += bytes([0, 0])
    data += bytes([0, 1])
    palette = b"".join(bytes([i, 255 - i, i * 7 % 256, 0]) for i in range(256))
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(data), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 1024 + len(data), 0, 0, 54 + 1024) + header + palette + data


def masked_bmp(bits, masks):
    """A BMP of 16 or 32 bits with bit masks, rows from the top."""
    random = numpy.random.default_rng(9)
    pixels = random.integers(0, 1 << bits, (5, 6), dtype="uint32").astype("<u2" if bits == 16 else "<u4")
    header = struct.pack("<IiiHHIIiiII", 40, 6, -5, 1, bits, 3, 0, 0, 0, 0, 0) + struct.pack("<III", *masks)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(header)) + header + pixels.tobytes()


def files():
    """Yields name, content, and the greatest mean difference that is allowed."""
    def saved(image, form, **options):
        out = io.BytesIO()
        image.save(out, form, **options)
        return out.getvalue()

    for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "I;16"):
        yield f"png-{mode}", saved(picture(mode, 1), "PNG"), 0
    yield "png-transparent", saved(picture("P", 2), "PNG", transparency=3), 0
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        yield f"bmp-{mode}", saved(picture(mode, 3), "BMP"), 0
    yield "bmp-rle8", rle8(picture("L", 4)), 0
    yield "bmp-565", masked_bmp(16, (0xF800, 0x07E0, 0x001F)), 1
    yield "bmp-8888", masked_bmp(32, (0xFF0000, 0xFF00, 0xFF)), 0
    for interlace in (0, 1):
        yield f"gif-{interlace}", saved(picture("P", 5), "GIF", interlace=interlace), 0
    yield "gif-transparent", saved(picture("P", 6), "GIF", transparency=5), 0
    yield "gif-animated", saved(picture("P", 7), "GIF", save_all=True, append_images=[picture("P", 8)]), 0
    for mode in ("RGB", "RGBA", "L"):
        yield f"webp-lossless-{mode}", saved(picture(mode, 9), "WEBP", lossless=True, exact=True), 0
    yield "webp-lossy", saved(picture("RGB", 10), "WEBP", quality=80), 1
    yield "webp-animated", saved(picture("RGB", 11), "WEBP", lossless=True, save_all=True, append_images=[picture("RGB", 12)]), 0
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16"):
            yield f"tiff-{compression}-{mode}", saved(picture(mode, 13), "TIFF", compression=compression), 1 if mode in ("CMYK", "I;16") else 0
    yield "tiff-group4", saved(picture("1", 14), "TIFF", compression="group4"), 0
    yield "tiff-jpeg", saved(picture("RGB", 15), "TIFF", compression="jpeg"), 2
    yield "tiff-pages", saved(picture("RGB", 16), "TIFF", save_all=True, append_images=[picture("RGB", 17)]), 0
    yield "jpeg-RGB", saved(picture("RGB", 18), "JPEG", quality=95), 1
    yield "jpeg-L", saved(picture("L", 19), "JPEG", quality=95), 1
    yield "jpeg-CMYK", saved(picture("CMYK", 20), "JPEG", quality=95), 2
    for orientation in range(1, 9):
        image = picture("RGB", 20 + orientation)
        yield f"jpeg-turned-{orientation}", saved(image, "JPEG", quality=95, exif=exif(orientation)), 1
        yield f"png-turned-{orientation}", saved(image, "PNG", exif=exif(orientation)), 0
        yield f"webp-turned-{orientation}", saved(image, "WEBP", lossless=True, exif=exif(orientation)), 0
        yield f"tiff-turned-{orientation}", saved(image, "TIFF", tiffinfo={ORIENTATION: orientation}), 0


def pillow(content):
    image = Image.open(io.BytesIO(content))
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16") or image.mode == "I":  # Pillow clips 16 bits; both sides take the upper byte
        image = Image.fromarray(numpy.round(numpy.asarray(image).astype("float64") / 257).astype("uint8"))
    return numpy.asarray(image.convert("RGB")).astype(int)


def main():
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = list(files())
        for name, content, _ in cases:
            pathlib.Path(folder, name.replace(";", "-")).write_bytes(content)
        subprocess.run([sys.argv[1], "--gtest_filter=ImageDump.*"], env={**os.environ, "SINEW_IMAGES": folder}, check=True,
                       stdout=subprocess.DEVNULL)
        for name, content, limit in cases:
            head, _, rest = pathlib.Path(folder, name.replace(";", "-") + ".rgb").read_bytes().partition(b"\n")
            expected = pillow(content)
            count += 1
            if head.startswith(b"failed"):
                print(f"{name}: {head.decode()}")
                failed += 1
                continue
            height, width = map(int, head.split())
            found = numpy.frombuffer(rest, "uint8").reshape(height, width, 3).astype(int)
            if found.shape != expected.shape:
                print(f"{name}: the shape is {found.shape}, Pillow's {expected.shape}")
                failed += 1
                continue
            difference = numpy.abs(found - expected).mean()
            if difference > limit:
                print(f"{name}: the mean difference is {difference:.3f}, at most {limit} is allowed")
                failed += 1
    print(f"{count} files, {failed} differ")
    return 1 if failed or count < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
