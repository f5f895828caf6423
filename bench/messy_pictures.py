"""Folders of pictures as people have them, for messy_files.py. PICTURES: name -> Messy."""
import random

from messy_place import Messy

EACH = 12  # pictures of a class
CLASSES = ("cat", "dog")


def picture(kind, i, mode="RGB", size=(24, 20)):
    from PIL import Image
    draw = random.Random(f"{kind}{i}")
    base = 60 if kind == "cat" else 180
    noise = bytes(min(255, max(0, base + draw.randrange(-40, 40))) for _ in range(size[0] * size[1] * 3))
    return Image.frombytes("RGB", size, noise).convert(mode)


def folder_of(form="png", mode="RGB", change=None, root="pictures", **options):
    """Returns what writes a folder with a folder for each class; change(root) adds the mess."""
    def write(folder):
        for kind in CLASSES:
            (folder / root / kind).mkdir(parents=True)
            for i in range(EACH):
                picture(kind, i, mode).save(folder / root / kind / f"{i}.{form}", **options)
        if change:
            change(folder / root)
    return write


def sixteen_bits(root):
    from PIL import Image
    for path in sorted(root.glob("*/*.png")):
        grey = Image.open(path).convert("L")
        Image.frombytes("I;16", grey.size, b"".join(bytes((0, byte)) for byte in grey.tobytes())).save(path)


def turned(root):
    from PIL import Image
    for path in sorted(root.glob("*/*.jpg"))[::3]:
        exif = Image.Exif()
        exif[0x0112] = 6
        image = Image.open(path)
        image.load()
        image.save(path, exif=exif)


def cut(name):
    def change(root):
        path = root / name
        path.write_bytes(path.read_bytes()[:300])
    return change


def put(name, content=b""):
    def change(root):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return change


def several_sizes(root):
    for i, size in enumerate([(7, 90), (200, 130), (1, 1)]):
        picture("cat", 50 + i, size=size).save(root / "cat" / f"other{i}.png")


def nested(root):
    (root / "cat/young").mkdir()
    for i in range(4):
        picture("cat", 70 + i).save(root / "cat/young" / f"{i}.png")


def split_folders(folder):
    for split, first in (("train", 0), ("val", 100), ("test", 200)):
        for kind in CLASSES:
            (folder / "pictures" / split / kind).mkdir(parents=True)
            for i in range(EACH if split == "train" else 4):
                picture(kind, first + i).save(folder / "pictures" / split / kind / f"{i}.png")


def flat(folder):
    (folder / "pictures").mkdir()
    for kind in CLASSES:
        for i in range(EACH):
            picture(kind, i).save(folder / "pictures" / f"{kind}_{i}.png")


def one_class(folder):
    (folder / "pictures/cat").mkdir(parents=True)
    for i in range(EACH):
        picture("cat", i).save(folder / "pictures/cat" / f"{i}.png")


def listed(head, extra=""):
    def write(folder):
        (folder / "files").mkdir()
        lines = []
        for kind in CLASSES:
            for i in range(EACH):
                picture(kind, i).save(folder / "files" / f"{kind}{i}.png")
                lines.append(f"files/{kind}{i}.png,{kind}\n")
        (folder / "list.csv").write_text(head + "".join(lines) + extra)
    return write


def eval_folder(folder):
    split_folders(folder)
    (folder / "pictures/val").rename(folder / "pictures/eval")


def wrapped(folder):
    folder_of(root="pictures/animals")(folder)


def list_inside(folder):
    flat(folder)
    lines = [f"{kind}_{i}.png,{kind}\n" for kind in CLASSES for i in range(EACH)]
    (folder / "pictures/labels.csv").write_text("image,label\n" + "".join(lines))


def loop(root):
    (root / "cat/again").symlink_to(root)


def linked(root):
    (root / "cat/linked.png").symlink_to(root / "dog/0.png")
    (root / "cat/broken.png").symlink_to(root / "dog/none.png")


def moving(root):
    frames = [picture("cat", 90 + i) for i in range(3)]
    frames[0].save(root / "cat/moving.gif", save_all=True, append_images=frames[1:])


def shown(what, write, count=2 * EACH, **more):
    return Messy(what, write, data=more.pop("data", "pictures"), target=None, rows=count, task="classification", **more)


PICTURES = {
    "png": shown("", folder_of()),
    "webp": shown("WebP", folder_of("webp")),
    "gif": shown("GIF, and a moving one", folder_of("gif", change=moving), count=25),
    "bmp": shown("BMP", folder_of("bmp")),
    "tiff": shown("TIFF", folder_of("tiff")),
    "tiff_lzw": shown("TIFF with LZW", folder_of("tif", compression="tiff_lzw")),
    "png_16": shown("PNG of 16 bits", folder_of(change=sixteen_bits)),
    "png_1": shown("PNG of 1 bit", folder_of(mode="1")),
    "png_grey": shown("grey", folder_of(mode="L")),
    "png_alpha": shown("alpha", folder_of(mode="RGBA")),
    "png_palette": shown("a palette", folder_of(mode="P")),
    "jpeg": shown("JPEG", folder_of("jpg")),
    "jpeg_cmyk": shown("CMYK", folder_of("jpg", mode="CMYK")),
    "jpeg_exif": shown("turned by EXIF", folder_of("jpg", change=turned)),
    "jpeg_progressive": shown("progressive", folder_of("jpg", progressive=True)),
    "jpeg_upper": shown("named .JPG", folder_of("JPG")),
    "jpeg_cut": shown("one is cut off", folder_of("jpg", change=cut("cat/3.jpg"))),
    "jpeg_cut_skip": shown("one is cut off, on_corrupt: skip", folder_of("jpg", change=cut("cat/3.jpg")), job=("data.on_corrupt=skip",)),
    "jpeg_empty": shown("one has no bytes", folder_of("jpg", change=put("cat/3.jpg"))),
    "jpeg_page": shown("one is a page of HTML", folder_of("jpg", change=put("cat/3.jpg", b"<!DOCTYPE html><html>Not found</html>"))),
    "jpeg_named_png": shown("one is a PNG, named .jpg",
                            folder_of("jpg", change=lambda root: picture("cat", 80).save(root / "cat/80.jpg", format="png")), count=25),
    "text_beside": shown("notes among the pictures", folder_of(change=put("cat/notes.txt", b"from my camera\n")), count=25),
    "hidden_beside": shown("files of the Finder", folder_of(change=put("cat/.DS_Store", b"\0\0\0\1Bud1"))),
    "thumbs_beside": shown("Thumbs.db", folder_of(change=put("cat/Thumbs.db", b"\xd0\xcf\x11\xe0")), count=25),
    "macosx": shown("a folder __MACOSX", folder_of(change=put("__MACOSX/._cat", b"\0\5\x16\7"))),
    "file_in_root": shown("a picture beside the folders", folder_of(change=lambda root: picture("cat", 81).save(root / "cover.png")), count=25,
                          says=r"cover\.png.*class|class.*cover\.png"),
    "heic": shown("a HEIC among them", folder_of("jpg", change=put("cat/phone.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")), count=25),
    "svg": shown("an SVG among them", folder_of(change=put("cat/drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>")), count=25),
    "empty_class": shown("a class without pictures", folder_of(change=lambda root: (root / "fox").mkdir())),
    "class_of_notes": shown("a class with notes only", folder_of(change=put("fox/notes.txt", b"none yet\n")), count=25),
    "nested": shown("folders in a class", folder_of(change=nested), count=28),
    "split": shown("train, val and test", split_folders, count=40),
    "eval_folder": shown("train, eval and test", eval_folder, count=40),
    "wrapped": shown("a folder around the classes", wrapped),
    "list_inside": shown("a folder of pictures and labels.csv", list_inside, says=r"a list of 24", new_rows=25),
    "flat": shown("no folders of classes", flat, says=r"png"),
    "one_class_only": shown("one class", one_class, count=EACH, refused=True),
    "sizes": shown("other sizes, one of 1 x 1", folder_of(change=several_sizes), count=27),
    "unicode_classes": shown("spaces and umlauts in names", folder_of(change=lambda root: (root / "cat").rename(root / "große Katze 🐈"))),
    "loop": shown("a link to the folder itself", folder_of(change=loop)),
    "links": shown("a link to a picture, and one to nothing", folder_of(change=linked), count=26),
    "list": shown("a list", listed("image,label\n"), data="list.csv"),
    "list_no_header": shown("a list without header", listed(""), data="list.csv"),
    "list_missing_file": shown("a list that names a file that is not there", listed("image,label\n", "files/none.png,cat\n"), data="list.csv", count=25),
    "one_picture": shown("a single picture", lambda folder: picture("cat", 1).save(folder / "cat.png"), data="cat.png", count=1, refused=True),
}
