"""Defines generative models: autoencoders with codes of several kinds, flows, diffusion, masked densities, adversarial
training."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def perceptron(*widths, activation=nn.ReLU):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


class Vae(nn.Module):
    """The noise is an optional input; without it the model draws the noise."""

    def __init__(self, inputs=20, hidden=24, code=4):
        super().__init__()
        self.encoder, self.decoder = perceptron(inputs, hidden, 2 * code), perceptron(code, hidden, inputs)

    def forward(self, x, noise=None):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        if noise is None:
            noise = torch.randn_like(mean)
        z = mean + noise * torch.exp(0.5 * log_variance)
        return torch.sigmoid(self.decoder(z)), mean, log_variance


class VaeWithLoss(Vae):
    def forward(self, x, noise=None):
        reconstruction, mean, log_variance = super().forward(x, noise)
        error = F.binary_cross_entropy(reconstruction, x, reduction="sum") / x.size(0)
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp()) / x.size(0)
        return {"loss": error + divergence, "reconstruction": reconstruction, "divergence": divergence}


class VectorQuantizer(nn.Module):
    """Replaces codes by the nearest ones, passes gradients straight through, and adds a commitment loss."""

    def __init__(self, codes=16, width=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 8, 4, stride=2, padding=1), nn.ReLU(),
                                     nn.Conv1d(8, width, 3, padding=1))
        self.decoder = nn.Sequential(nn.Conv1d(width, 8, 3, padding=1), nn.ReLU(),
                                     nn.ConvTranspose1d(8, 1, 4, stride=2, padding=1))
        self.codebook = nn.Embedding(codes, width)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)

    def forward(self, x):
        z = self.encoder(x.unsqueeze(1)).transpose(1, 2)
        flat = z.reshape(-1, z.size(-1))
        codes = torch.cdist(flat, self.codebook.weight, compute_mode="donot_use_mm_for_euclid_dist").argmin(dim=1)
        quantized = self.codebook(codes).view(z.shape)
        loss = F.mse_loss(quantized, z.detach()) + 0.25 * F.mse_loss(z, quantized.detach())
        quantized = z + (quantized - z).detach()
        reconstruction = self.decoder(quantized.transpose(1, 2)).squeeze(1)
        return F.mse_loss(reconstruction, x) + loss, reconstruction, codes.view(z.shape[:2])


class Coupling(nn.Module):
    def __init__(self, width, even):
        super().__init__()
        self.register_buffer("mask", (torch.arange(width) % 2 == even).float())
        self.net = perceptron(width, 24, 2 * width, activation=nn.Tanh)

    def forward(self, x):
        scale, shift = self.net(x * self.mask).chunk(2, dim=-1)
        scale = torch.tanh(scale) * (1 - self.mask)
        return x * scale.exp() + shift * (1 - self.mask), scale.sum(dim=-1)


class Flow(nn.Module):
    """Coupling layers between learned rotations, with their determinants. Returns the negative log likelihood."""

    def __init__(self, width=6, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(width, i % 2) for i in range(depth))
        self.mixes = nn.ParameterList(nn.init.orthogonal_(torch.empty(width, width)) for _ in range(depth))

    def forward(self, x):
        total = x.new_zeros(x.size(0))
        for layer, mix in zip(self.layers, self.mixes):
            x, log_determinant = layer(x @ mix)
            total = total + log_determinant + torch.linalg.slogdet(mix).logabsdet
        log_prior = -0.5 * (x.square() + math.log(2 * math.pi)).sum(-1)
        return -(log_prior + total).mean()


class Diffusion(nn.Module):
    """Predicts the noise that was mixed into an image at a given time."""

    def __init__(self, width=8, steps=50):
        super().__init__()
        self.width = width
        kept = torch.cumprod(1 - torch.linspace(1e-4, 0.05, steps), dim=0)
        self.register_buffer("kept", kept.sqrt())
        self.register_buffer("mixed", (1 - kept).sqrt())
        self.time = nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, 2 * width))
        self.conv_in, self.norm = nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(2, width)
        self.down, self.conv_out = nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x, t, noise):
        noisy = self.kept[t].view(-1, 1, 1, 1) * x + self.mixed.gather(0, t).reshape(-1, 1, 1, 1) * noise
        half = self.width // 2
        frequencies = torch.exp(-math.log(1000) * torch.arange(half, device=t.device) / half)
        angles = t[:, None].float() * frequencies[None]
        scale, shift = self.time(torch.cat([angles.cos(), angles.sin()], dim=-1))[:, :, None, None].chunk(2, dim=1)
        h = self.conv_in(noisy)
        h = F.silu(self.norm(h) * (1 + scale) + shift)
        low = F.interpolate(F.silu(self.down(h)), scale_factor=2.0, mode="nearest")
        return F.mse_loss(self.conv_out(torch.cat([h, low], dim=1)), noise)


class MaskedLinear(nn.Linear):
    def __init__(self, inputs, outputs, mask):
        super().__init__(inputs, outputs)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return F.linear(x, self.mask * self.weight, self.bias)


class Made(nn.Module):
    """An autoregressive density of bits by masked weights."""

    def __init__(self, width=10, hidden=24):
        super().__init__()
        places, degrees = torch.arange(width), torch.arange(hidden) % (width - 1)
        self.first = MaskedLinear(width, hidden, (degrees[:, None] >= places[None, :]).float())
        self.second = MaskedLinear(hidden, width, (places[:, None] > degrees[None, :]).float())

    def forward(self, bits):
        x = bits.to(torch.float32)
        logits = self.second(torch.relu(self.first(x)))
        return F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()


class MaskedConv2d(nn.Conv2d):
    def __init__(self, *args, after, **options):
        super().__init__(*args, **options)
        mask = torch.zeros_like(self.weight)
        rows, columns = self.kernel_size
        mask[:, :, :rows // 2] = 1
        mask[:, :, rows // 2, :columns // 2 + int(after)] = 1
        self.register_buffer("mask", mask)

    def forward(self, x):
        return self._conv_forward(x, self.weight * self.mask, self.bias)


class PixelCnn(nn.Module):
    """Predicts four levels of grey pixel by pixel. Logits have the shape (batch, pixels, levels)."""

    def __init__(self, width=12, levels=4):
        super().__init__()
        self.levels = levels
        self.body = nn.Sequential(MaskedConv2d(levels, width, 5, padding=2, after=False), nn.ELU(),
                                  MaskedConv2d(width, width, 3, padding=1, after=True), nn.ELU())
        self.head = nn.Conv2d(width, levels, 1)

    def forward(self, image):
        x = F.one_hot(image, self.levels).permute(0, 3, 1, 2).float()
        return self.head(self.body(x)).flatten(2).transpose(1, 2)


class GeneratorStep(nn.Module):
    """Trains a generator against a frozen discriminator. Gradients pass through the discriminator."""

    def __init__(self, code=6):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(code, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10), nn.Tanh())
        self.discriminator = perceptron(10, 16, 1, activation=lambda: nn.LeakyReLU(0.2))
        self.discriminator.requires_grad_(False)

    def forward(self, noise):
        fake = self.generator(noise)
        return F.softplus(-self.discriminator(fake)).mean(), fake


class SparseAutoencoder(nn.Module):
    """Keeps the k largest activations, and counts in a buffer how often it kept each feature."""

    def __init__(self, width=12, features=32, k=4):
        super().__init__()
        self.k, self.before = k, nn.Parameter(torch.zeros(width))
        self.encoder, self.decoder = nn.Linear(width, features), nn.Linear(features, width, bias=False)
        self.register_buffer("fired", torch.zeros(features))

    def forward(self, x):
        activations = F.relu(self.encoder(x - self.before))
        values, places = activations.topk(self.k, dim=-1, sorted=False)
        sparse = torch.zeros_like(activations).scatter(-1, places, values)
        self.fired += (sparse > 0).float().sum(0)
        return F.linear(sparse, F.normalize(self.decoder.weight, dim=0)) + self.before


def vae_data(n):
    x = uniform(n, 20)
    return (x, normal(n, 4)), x


def same(x):
    return (x,), x


def diffusion_data(n):
    x = normal(n, 1, 8, 8)
    return (x, integers(50, n), normal(n, 1, 8, 8)), x


def grey(n):
    image = integers(4, n, 6, 6)
    return (image,), image


program("vae", "generative", Vae, vae_data, loss="mse")
program("vae_loss", "generative", VaeWithLoss, vae_data, loss="output")
program("vector_quantizer", "generative", VectorQuantizer, lambda n: same(normal(n, 16)), loss="output")
program("normalizing_flow", "generative", Flow, lambda n: same(normal(n, 6)), loss="output")
program("diffusion", "generative", Diffusion, diffusion_data, loss="output")
program("made", "generative", Made, lambda n: same(uniform(n, 10) < 0.4), loss="output")
program("pixel_cnn", "generative", PixelCnn, grey)
program("gan_generator", "generative", GeneratorStep, lambda n: same(normal(n, 6)), loss="output")
program("sparse_autoencoder", "generative", SparseAutoencoder, lambda n: same(normal(n, 12)), loss="mse",
        variants=["decomposed"])
