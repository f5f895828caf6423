"""Defines image classifiers with skip connections: ResNet and its successors."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program


def images(n):
    return (normal(n, 3, 12, 12),), integers(10, n)


def pooled(channels, classes=10):
    return nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(channels, classes))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride=1, groups=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, inputs, 1, bias=False), nn.BatchNorm2d(inputs, momentum=0.03)
        nn.init.zeros_(self.bn3.weight)
        self.pool = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + self.pool(x))


class PreActivation(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width), nn.GroupNorm(4, width)
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.scale = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        out = self.conv1(F.relu(self.norm1(x)))
        return x + self.scale * self.conv2(F.relu(self.norm2(out)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed, gate):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.gate = gate

    def forward(self, x):
        return x * self.gate(self.fc2(F.relu(self.fc1(self.pool(x)))))


class InvertedResidual(nn.Module):
    """MobileNet's block: widen, depthwise convolution, squeeze and excite, narrow."""

    def __init__(self, inputs, outputs, expand=3, stride=1, activation=nn.Hardswish, gate=None):
        super().__init__()
        hidden = inputs * expand
        layers = [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), activation(inplace=True),
                  nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
                  activation(inplace=True)]
        if gate is not None:
            layers.append(SqueezeExcite(hidden, hidden // 4, gate))
        self.layers = nn.Sequential(*layers, nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.skip else self.layers(x)


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, features):
        return self.conv(F.relu(self.norm(torch.cat(features, 1))))


class DenseNet(nn.Module):
    def __init__(self, growth=6, layers=3, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1, bias=False)
        self.layers = nn.ModuleList(DenseLayer(12 + i * growth, growth) for i in range(layers))
        width = 12 + layers * growth
        self.transition = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 16, 1), nn.AvgPool2d(2, 2))
        self.head = pooled(16, classes)

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(features))
        return self.head(self.transition(torch.cat(features, dim=1)))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias,
                            self.eps).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(1e-2 * torch.ones(width))

    def forward(self, x):
        out = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        out = self.gamma * self.down(F.gelu(self.up(out)))
        return x + out.permute(0, 3, 1, 2)


class StandardizedConv2d(nn.Conv2d):
    """Standardises the weights of every output channel in every forward."""

    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        weight = (self.weight - mean) * torch.rsqrt(variance + 1e-5)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ShuffleUnit(nn.Module):
    def __init__(self, width):
        super().__init__()
        half = width // 2
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
            nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False), nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True))

    def forward(self, x):
        kept, changed = x.chunk(2, dim=1)
        x = torch.cat((kept, self.branch(changed)), dim=1)
        n, channels, height, width = x.size()
        return x.view(n, 2, channels // 2, height, width).transpose(1, 2).contiguous().view(n, -1, height, width)


def stem(width, stride=1):
    return nn.Sequential(nn.Conv2d(3, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


program("resnet_basic", "resnet",
        lambda: nn.Sequential(stem(8), BasicBlock(8, 8), BasicBlock(8, 16, 2), pooled(16)), images)
program("resnet_bottleneck", "resnet",
        lambda: nn.Sequential(stem(24, 2), Bottleneck(24, 8), Bottleneck(24, 8, stride=2, groups=2), pooled(24)),
        images)
program("resnet_preactivation", "resnet",
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3, 2), PreActivation(16), PreActivation(16), nn.ReLU(), pooled(16)),
        images)
program("resnet_weight_standardized", "resnet",
        lambda: nn.Sequential(StandardizedConv2d(3, 16, 3, 2), nn.GroupNorm(2, 16), nn.ReLU(),
                              StandardizedConv2d(16, 24, 3, groups=2, bias=False), nn.ReLU(), pooled(24)), images)
program("mobilenet_v2_blocks", "mobilenet",
        lambda: nn.Sequential(stem(8, 2), InvertedResidual(8, 8, activation=nn.ReLU6),
                              InvertedResidual(8, 12, stride=2, activation=nn.ReLU6), pooled(12)), images)
program("mobilenet_v3_blocks", "mobilenet",
        lambda: nn.Sequential(stem(8, 2), InvertedResidual(8, 8, gate=nn.Hardsigmoid()),
                              InvertedResidual(8, 12, stride=2, gate=nn.Hardsigmoid()), pooled(12)), images)
program("efficientnet_blocks", "mobilenet",
        lambda: nn.Sequential(stem(8, 2), InvertedResidual(8, 8, 4, activation=nn.SiLU, gate=nn.Sigmoid()),
                              InvertedResidual(8, 8, 4, activation=nn.SiLU, gate=nn.Sigmoid()), pooled(8)), images)
program("densenet_concat", "densenet", DenseNet, images, batch=4, other=6)
program("convnext_blocks", "convnext",
        lambda: nn.Sequential(nn.Conv2d(3, 16, 2, stride=2), LayerNorm2d(16, eps=1e-6), ConvNeXtBlock(16),
                              ConvNeXtBlock(16), LayerNorm2d(16), nn.Conv2d(16, 24, 2, stride=2), pooled(24)), images)
program("shufflenet_units", "mobilenet",
        lambda: nn.Sequential(stem(12, 2), ShuffleUnit(12), ShuffleUnit(12), pooled(12)), images)
