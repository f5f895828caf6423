"""Writes vae.pt2: a variational autoencoder (Kingma and Welling 2013) that returns its own loss, for vae.yaml.
`python vae.py`, with PyTorch 2.13."""
import torch
from torch import nn
from torch.nn import functional as F

LATENT = 16


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 784))

    def forward(self, image):  # [batch, 1, 28, 28], normalised -> the batch mean of the negative evidence lower bound
        mean, log_variance = self.encoder(image).chunk(2, 1)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        apart = 0.5 * F.mse_loss(self.decoder(latent), image.flatten(1), reduction="none").sum(1)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1)
        return (apart + divergence).mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    program = torch.export.export(Vae().train(), (torch.randn(4, 1, 28, 28),),
                                  dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, "vae.pt2")
