"""Defines models whose output is an image: autoencoders, segmentation, super-resolution, warping, patches."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def same_image(n, channels=1, size=12):
    x = uniform(n, channels, size, size)
    return (x,), x


def pixel_classes(n, size=8, classes=3):
    """Returns images and a class for each pixel. The models return logits as (batch, pixels, classes)."""
    return (normal(n, 3, size, size),), integers(classes, n, size, size)


def as_pixels(logits):
    return logits.flatten(2).transpose(1, 2)


class TransposedAutoencoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(True), nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(True), nn.Flatten(), nn.Linear(16 * 9, code))
        self.decoder = nn.Sequential(
            nn.Linear(code, 16 * 9), nn.Unflatten(1, (16, 3, 3)), nn.ReLU(True),
            nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1), nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


def double_conv(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                         nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.down1, self.down2 = double_conv(3, width), double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 2 * width)
        self.up2, self.up1 = double_conv(4 * width, width), double_conv(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skip1 = self.down1(x)
        skip2 = self.down2(F.max_pool2d(skip1, 2))
        x = self.bottom(F.max_pool2d(skip2, 2))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        x = self.up2(torch.cat([x, skip2], dim=1))
        x = F.interpolate(x, size=skip1.shape[-2:], mode="nearest")
        x = self.up1(torch.cat([x, skip1], dim=1))
        return as_pixels(self.head(x))


class FeaturePyramid(nn.Module):
    """Atrous pyramid with image pooling on top, lateral connections below."""

    def __init__(self, classes=3, width=12):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.low = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.atrous = nn.ModuleList(nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2))
        self.pooling = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width, 1), nn.ReLU())
        self.project = nn.Conv2d(3 * width, width, 1)
        self.lateral = nn.Conv2d(width, width, 1)
        self.upsample = nn.Upsample(scale_factor=2, mode="bicubic", align_corners=False)
        self.head = nn.Conv2d(width, classes, 3, padding=1)

    def forward(self, x):
        high = F.relu(self.stem(x))
        low = F.relu(self.low(high))
        image = self.pooling(low).expand(-1, -1, low.size(2), low.size(3))
        low = self.project(torch.cat([atrous(low) for atrous in self.atrous] + [image], 1))
        return as_pixels(self.head(self.upsample(low) + self.lateral(high)))


class SegNet(nn.Module):
    """Upsamples with MaxUnpool: each value goes back to the position of the maximum that the encoder pooled."""

    def __init__(self, classes=3, width=10):
        super().__init__()
        self.encoder, self.decoder = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, classes, 3, padding=1)
        self.pool, self.unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x):
        x, indices = self.pool(torch.tanh(self.encoder(x)))
        return as_pixels(self.decoder(self.unpool(x, indices)))


class SuperResolution(nn.Module):
    def __init__(self, scale=2, width=12):
        super().__init__()
        self.scale = scale
        self.body = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.Tanh(), nn.Conv2d(width, width, 3, padding=1),
                                  nn.Tanh(), nn.Conv2d(width, scale * scale, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, small):
        residual = self.body(small)
        return (residual + F.interpolate(small, scale_factor=self.scale, mode="bilinear")).clamp(-2.0, 2.0)


class SpatialTransformer(nn.Module):
    """Warps its input before it classifies it."""

    def __init__(self, classes=5):
        super().__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(True), nn.Flatten(),
                                          nn.Linear(4 * 16, 6))
        nn.init.normal_(self.localization[-1].weight, std=1e-2)
        with torch.no_grad():
            self.localization[-1].bias.copy_(torch.tensor([1, 0.1, 0.07, -0.1, 1, 0.03]))
        self.classifier = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(True), nn.AvgPool2d(2), nn.Flatten(),
                                        nn.Linear(8 * 25, classes))

    def forward(self, x):
        theta = self.localization(x).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return self.classifier(F.grid_sample(x, grid, align_corners=False))


class PatchDenoiser(nn.Module):
    """Applies a shared network to overlapping patches and averages the overlaps."""

    def __init__(self, patch=4, stride=2, hidden=24):
        super().__init__()
        self.unfold = nn.Unfold(patch, stride=stride)
        self.body = nn.Sequential(nn.Linear(patch * patch, hidden), nn.GELU(), nn.Linear(hidden, patch * patch))
        self.fold = nn.Fold((12, 12), patch, stride=stride)
        self.register_buffer("overlap", self.fold(self.unfold(torch.ones(1, 1, 12, 12))).clone())

    def forward(self, x):
        patches = self.unfold(x).transpose(1, 2)
        patches = patches + self.body(patches)
        return self.fold(patches.transpose(1, 2)) / self.overlap


class HaarWavelet(nn.Module):
    """Learned shrinkage in a fixed wavelet basis: analysis and synthesis are convolutions with one buffer."""

    def __init__(self):
        super().__init__()
        one, low = torch.tensor([1.0, -1.0]), torch.ones(2)
        filters = [torch.outer(a, b) / 2 for a in (low, one) for b in (low, one)]
        self.register_buffer("filters", torch.stack(filters).unsqueeze(1))
        self.thresholds = nn.Parameter(torch.full((1, 3, 1, 1), 0.05))
        self.gain = nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular")

    def forward(self, x):
        bands = F.conv2d(x, self.filters, stride=2)
        low, details = bands.split([1, 3], dim=1)
        details = details.sign() * F.relu(details.abs() - self.thresholds)
        return F.conv_transpose2d(torch.cat([self.gain(low), details], 1), self.filters, stride=2)


def noisy(n):
    clean = uniform(n, 1, 12, 12)
    return (clean + 0.2 * normal(n, 1, 12, 12),), clean


def super_resolution_data(n):
    large = uniform(n, 1, 12, 12)
    return (F.avg_pool2d(large, 2),), large


program("autoencoder_transposed", "dense", TransposedAutoencoder, same_image, loss="mse")
program("unet", "dense", UNet, pixel_classes, batch=4, other=3)
program("feature_pyramid", "dense", FeaturePyramid, pixel_classes, batch=4, other=3)
program("segnet_unpool", "dense", SegNet, pixel_classes, batch=4, other=3)
program("super_resolution", "dense", SuperResolution, super_resolution_data, loss="mse", batch=4)
program("spatial_transformer", "dense", SpatialTransformer, lambda n: ((normal(n, 1, 12, 12),), integers(5, n)))
program("patch_denoiser", "dense", PatchDenoiser, noisy, loss="mse", batch=4)
program("haar_wavelet", "dense", HaarWavelet, noisy, loss="mse")
