"""Defines convolutional networks without skip connections: for images, sequences and volumes."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, padded_ids, program


def images(n, channels=3, size=16, classes=10):
    return (normal(n, channels, size, size),), integers(classes, n)


class LeNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2))
        self.classifier = nn.Sequential(
            nn.Linear(16 * 3 * 3, 60), nn.Tanh(), nn.Linear(60, 42), nn.Tanh(), nn.Linear(42, classes))

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.view(x.size(0), -1))


def conv_stage(inputs, outputs, norm):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), norm(outputs), nn.ReLU(inplace=True),
                         nn.MaxPool2d(2))


class ConvNet(nn.Module):
    """The usual small network with a given kind of normalisation."""

    def __init__(self, norm, classes=10):
        super().__init__()
        self.stages = nn.Sequential(conv_stage(3, 12, norm), conv_stage(12, 24, norm), conv_stage(24, 32, norm))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.pool(self.stages(x)).flatten(1))


class AlexNet(nn.Module):
    """Local response normalisation, overlapping and adaptive pooling."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU(inplace=True),
            nn.LocalResponseNorm(5, alpha=1e-3, k=2.0), nn.MaxPool2d(3, stride=2, ceil_mode=True),
            nn.Conv2d(16, 24, 3, padding="same", groups=2), nn.ReLU(inplace=True), nn.LocalResponseNorm(5, k=2.0))
        self.pool = nn.AdaptiveMaxPool2d((3, 3))
        self.classifier = nn.Sequential(nn.Dropout(p=0.0), nn.Linear(24 * 9, 48), nn.ReLU(), nn.Linear(48, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


class DilatedContext(nn.Module):
    """Context aggregation by growing dilation, reflected borders."""

    def __init__(self, classes=10, width=12):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, padding_mode="reflect")
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = F.leaky_relu(self.stem(x), 0.1)
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1) + x
        return self.head(x).mean(dim=(2, 3))


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x), inplace=True)
        return torch.cat([F.relu(self.expand1x1(x)), F.relu(self.expand3x3(x))], dim=1)


class Inception(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.one = nn.Conv2d(inputs, 8, 1)
        self.tall = nn.Sequential(nn.Conv2d(inputs, 6, 1), nn.Conv2d(6, 8, (1, 5), padding=(0, 2)),
                                  nn.Conv2d(8, 8, (5, 1), padding=(2, 0)))
        self.pool = nn.Conv2d(inputs, 8, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)
        return torch.relu_(torch.cat([self.one(x), self.tall(x), self.pool(pooled)], 1))


class WaveNet(nn.Module):
    """Causal dilated 1-D convolutions, gated, with a skip path; predicts the next value of every step."""

    def __init__(self, width=12, dilations=(1, 2, 4)):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in dilations)
        self.mix = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in dilations)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 1, 1))

    def forward(self, signal):
        x = self.stem(signal.unsqueeze(1))
        skip = 0
        for dilated, mix in zip(self.dilated, self.mix):
            value, gate = dilated(F.pad(x, (dilated.dilation[0], 0))).chunk(2, dim=1)
            out = mix(torch.tanh(value) * torch.sigmoid(gate))
            skip = skip + out
            x = x + out
        return self.head(skip).squeeze(1)


class TextCnn(nn.Module):
    def __init__(self, vocabulary=40, width=16, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, 12, k) for k in (2, 3, 4))
        self.head = nn.Linear(36, classes)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        pooled = [F.relu(convolution(x)).max(dim=2).values for convolution in self.convolutions]
        return self.head(torch.cat(pooled, dim=1))


class VideoNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(2, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU(inplace=True),
            nn.MaxPool3d((1, 2, 2)), nn.Conv3d(8, 16, (3, 1, 1), padding=(1, 0, 0)), nn.ReLU(inplace=True))
        self.head = nn.Linear(16, classes)

    def forward(self, clip):
        return self.head(F.adaptive_avg_pool3d(self.body(clip), 1).flatten(1))


class ChannelsLast(nn.Module):
    """Converts to channels last inside, whatever format its input has."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        x = self.conv1(x.contiguous(memory_format=torch.channels_last)).relu()
        x = self.norm(self.conv2(x).permute(0, 2, 3, 1))
        return self.head(x.mean((1, 2)))


def signals(n):
    signal = normal(n, 25).cumsum(1) * 0.3
    return (signal[:, :-1].contiguous(),), signal[:, 1:].contiguous()


program("cnn_lenet", "cnn", LeNet, lambda n: images(n, channels=1, size=20))
program("cnn_batchnorm", "cnn", lambda: ConvNet(nn.BatchNorm2d), images, variants=["strict", "decomposed"])
program("cnn_groupnorm", "cnn", lambda: ConvNet(lambda width: nn.GroupNorm(4, width)), images, batch=4, other=3)
program("cnn_instancenorm", "cnn", lambda: ConvNet(lambda width: nn.InstanceNorm2d(width, affine=True)), images)
program("cnn_instancenorm_tracked", "cnn",
        lambda: ConvNet(lambda width: nn.InstanceNorm2d(width, affine=True, track_running_stats=True)), images)
program("cnn_alexnet", "cnn", AlexNet, images)
program("cnn_dilated", "cnn", DilatedContext, lambda n: images(n, size=12), batch=4, other=6)
program("cnn_squeezenet", "cnn",
        lambda: nn.Sequential(nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(inplace=True), Fire(12, 6, 8), nn.MaxPool2d(2),
                              Fire(16, 6, 8), nn.Conv2d(16, 10, 1), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten()), images)
program("cnn_inception", "cnn", lambda: nn.Sequential(nn.Conv2d(3, 12, 3, stride=2), Inception(12), Inception(24),
                                                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)), images)
program("cnn_wavenet", "cnn", WaveNet, signals, loss="mse")
program("cnn_text", "cnn", TextCnn, lambda n: ((padded_ids(40, n, 10),), integers(4, n)))
program("cnn_video", "cnn", VideoNet, lambda n: ((normal(n, 2, 4, 8, 8),), integers(5, n)), batch=4, other=6)
program("cnn_channels_last_inside", "cnn", ChannelsLast, images)
program("cnn_channels_last_input", "cnn", lambda: ConvNet(nn.BatchNorm2d),
        lambda n: ((normal(n, 3, 16, 16).to(memory_format=torch.channels_last),), integers(10, n)))
