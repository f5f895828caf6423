"""Defines programs that draw random numbers. The zoo can check only the shapes of their outputs and that a repetition
gives the same bits."""
import torch
from torch import nn

from common import integers, normal, program
from convolutional import images
from decoders import Gpt, text
from experts import DenseTopK, tokens
from generative import Vae, vae_data
from mlp import classification
from recurrent import sequences
from residual import BasicBlock, pooled, stem
from transformers import BertClassifier, Translator, bert_inputs, translation
from vision import VisionTransformer
from vision import images as small_images


def with_dropout(model, p=0.1):
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
    return model


class Cnn(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 12, 3), nn.Conv2d(12, 16, 3, stride=2)
        self.dropout1, self.dropout2 = nn.Dropout2d(0.25), nn.Dropout(0.5, inplace=True)
        self.head = nn.Linear(16 * 9, classes)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = self.dropout1(nn.functional.max_pool2d(x, 2))
        return self.head(self.dropout2(torch.relu(self.conv2(x)).flatten(1)))


class LstmClassifier(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.lstm = nn.LSTM(6, 16, num_layers=2, dropout=0.3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.lstm(x)[0].mean(1))


class StochasticDepth(nn.Module):
    """Drops complete residual branches for complete samples."""

    def __init__(self, width=16, depth=3, classes=5, p=0.3):
        super().__init__()
        self.stem, self.head, self.p = nn.Linear(20, width), nn.Linear(width, classes), p
        self.branches = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SELU(),
                                                    nn.AlphaDropout(0.1)) for _ in range(depth))

    def forward(self, x):
        x = self.stem(x)
        for branch in self.branches:
            y = branch(x)
            if self.training:
                y = y * torch.empty(x.size(0), 1).bernoulli_(1 - self.p) / (1 - self.p)
            x = x + y
        return self.head(x)


program("mlp_dropout", "mlp",
        lambda: nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 32), nn.BatchNorm1d(32),
                              nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5)), classification, dropout=True)
program("cnn_dropout", "cnn", Cnn, images, dropout=True)
program("lstm_dropout", "rnn", LstmClassifier, sequences, dropout=True)
program("bert_dropout", "encoder", lambda: with_dropout(BertClassifier()),
        lambda n: (bert_inputs(n), integers(3, n)), dropout=True)
program("gpt_dropout", "decoder", lambda: Gpt(dropout=0.2), text, batch=4, other=6, dropout=True)
program("vit_dropout", "vision-transformer", lambda: VisionTransformer(dropout=0.1), small_images, dropout=True)
program("vae_dropout", "generative", Vae, lambda n: ((vae_data(n)[0][0],), normal(n, 20)), loss="mse", dropout=True,
        evals=False)
program("resnet_dropout", "resnet",
        lambda: nn.Sequential(stem(8), BasicBlock(8, 8), nn.Dropout2d(0.2), BasicBlock(8, 16, 2),
                              nn.FeatureAlphaDropout(0.1), pooled(16)), images, dropout=True)
program("experts_dropout", "experts", lambda: DenseTopK(dropout=0.2), tokens, dropout=True)
program("translator_dropout", "encoder-decoder", lambda: Translator(dropout=0.1), translation, dropout=True)
program("stochastic_depth_dropout", "mlp", StochasticDepth, classification, dropout=True, evals=False)
