"""Writes text_classifier.pt2 and the sentences as numbers, for text-classifier.yaml.

    python text_classifier.py FOLDER

FOLDER has the train.tsv and dev.tsv of the Stanford Sentiment Treebank (in each line a sentence, a tab, and 0 or 1),
from https://github.com/clairett/pytorch-sentiment-classification/tree/master/data/SST2. Needs PyTorch 2.13 and numpy.
"""
import collections
import pathlib
import sys

import numpy
import torch
from torch import nn

WORDS, LENGTH, WIDTH = 8000, 32, 64  # 0 is padding, 1 is an unknown word


def read(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        sentence, label = line.rsplit("\t", 1)
        yield sentence.lower().split(), int(label)


def write(folder, known, part, name):
    rows, labels = [], []
    for words, label in read(folder / part):
        numbers = [known.get(word, 1) for word in words[:LENGTH]]
        rows.append(numbers + [0] * (LENGTH - len(numbers)))
        labels.append(label)
    numpy.save(f"{name}_words.npy", numpy.array(rows, dtype=numpy.float32))
    numpy.save(f"{name}_labels.npy", numpy.array(labels, dtype=numpy.int64))


class TextClassifier(nn.Module):
    """An encoder layer over the words, then the mean over the positions that are not padding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.2, batch_first=True, norm_first=True)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(WIDTH, 2)

    def forward(self, words):  # [batch, LENGTH] -> [batch, 2]
        padding = words == 0
        x = self.encoder(self.words(words) + self.places, src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1).to(x.dtype)
        return self.head(self.drop((x * kept).sum(1) / kept.sum(1).clamp(min=1)))


def main():
    folder = pathlib.Path(sys.argv[1])
    counts = collections.Counter(word for words, _ in read(folder / "train.tsv") for word in words)
    known = {word: i + 2 for i, (word, _) in enumerate(counts.most_common(WORDS - 2))}
    write(folder, known, "train.tsv", "train")
    write(folder, known, "dev.tsv", "val")
    torch.manual_seed(0)
    example = torch.randint(1, WORDS, (4, LENGTH))
    program = torch.export.export(TextClassifier().train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, "text_classifier.pt2")


if __name__ == "__main__":
    main()
