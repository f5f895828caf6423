"""Defines graphs that return their loss: metric learning, distillation, structured outputs, imbalance."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def encoder(inputs=12, outputs=8):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, outputs))


class ContrastiveViews(nn.Module):
    """SimCLR: two views of each sample; all other samples are negatives."""

    def __init__(self):
        super().__init__()
        self.encoder = encoder()

    def forward(self, first, second):
        z = F.normalize(self.encoder(torch.cat([first, second])), dim=-1)
        n = first.size(0)
        likeness = (z @ z.T / 0.5).masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
        partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
        return F.cross_entropy(likeness, partner)


class Triplet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()

    def forward(self, anchor, positive, negative):
        a, p, m = self.encoder(anchor), self.encoder(positive), self.encoder(negative)
        soft = F.softplus((a - p).norm(dim=1) - (a - m).norm(dim=1)).mean()
        sides = torch.ones(a.size(0))
        return F.triplet_margin_loss(a, p, m, margin=0.5) + soft + F.cosine_embedding_loss(a, p, sides) + \
            0.1 * F.margin_ranking_loss(a[:, 0], m[:, 0], sides, margin=0.2)


class ArcFace(nn.Module):
    """An angular margin between classes."""

    def __init__(self, classes=5, margin=0.3, scale=8.0):
        super().__init__()
        self.encoder, self.weight = encoder(), nn.Parameter(torch.randn(classes, 8))
        self.margin, self.scale = margin, scale

    def forward(self, x, label):
        cosine = F.linear(F.normalize(self.encoder(x)), F.normalize(self.weight))
        angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
        right = torch.zeros_like(cosine).scatter_(1, label.view(-1, 1), 1.0).bool()
        return F.cross_entropy(self.scale * torch.where(right, torch.cos(angle + self.margin), cosine), label)


class Distillation(nn.Module):
    """A frozen teacher, a student, softened targets and smoothed labels."""

    def __init__(self, classes=5, temperature=2.0):
        super().__init__()
        self.teacher, self.student, self.temperature = encoder(outputs=classes), nn.Linear(12, classes), temperature
        for parameter in self.teacher.parameters():
            parameter.requires_grad = False

    def forward(self, x, label):
        logits, t = self.student(x), self.temperature
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / t, dim=-1)
        divergence = F.kl_div(F.log_softmax(logits / t, dim=-1), soft, reduction="batchmean") * t * t
        return 0.7 * divergence + 0.3 * F.cross_entropy(logits, label, label_smoothing=0.1)


class WeightedClasses(nn.Module):
    """Focal, weighted and multi-label losses over one network."""

    def __init__(self, classes=5):
        super().__init__()
        self.body = encoder(outputs=classes)
        self.register_buffer("class_weights", torch.linspace(0.5, 2.0, classes))

    def forward(self, x, label):
        logits = self.body(x)
        right = F.log_softmax(logits, dim=1).gather(1, label.unsqueeze(1)).squeeze(1)
        focal = -((1 - right.exp()) ** 2 * right).mean()
        weighted = F.nll_loss(F.log_softmax(logits, 1), label, weight=self.class_weights, ignore_index=0)
        labels = F.one_hot(label, logits.size(1)).to(logits.dtype)
        many = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=self.class_weights)
        hinge = F.multi_margin_loss(logits, label, margin=0.5)
        return focal + weighted + many + hinge


class ConditionalRandomField(nn.Module):
    """Tags of a sequence: the forward algorithm in log space, the score of the right path, a padding mask."""

    def __init__(self, tags=4, vocabulary=20, width=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.emit = nn.Linear(width, tags)
        self.transitions = nn.Parameter(torch.randn(tags, tags) * 0.1)
        self.start, self.stop = nn.Parameter(torch.randn(tags) * 0.1), nn.Parameter(torch.randn(tags) * 0.1)

    def forward(self, words, tags, there):
        emissions = self.emit(self.lstm(self.embedding(words))[0])
        alpha = self.start + emissions[:, 0]
        right = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1]).squeeze(1)
        for step in range(1, words.size(1)):
            going = there[:, step]
            paths = alpha.unsqueeze(2) + self.transitions + emissions[:, step].unsqueeze(1)
            alpha = torch.where(going.unsqueeze(1), torch.logsumexp(paths, dim=1), alpha)
            more = self.transitions[tags[:, step - 1], tags[:, step]]
            more = more + emissions[:, step].gather(1, tags[:, step:step + 1]).squeeze(1)
            right = right + more * going
        last = tags.gather(1, there.sum(1, keepdim=True) - 1).squeeze(1)
        return (torch.logsumexp(alpha + self.stop, dim=1) - right - self.stop[last]).mean()


class Segmentation(nn.Module):
    """Dice and cross-entropy over pixels, some of which have no label."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 3, padding=1))

    def forward(self, image, mask):
        logits = self.body(image)
        known = mask != 255
        labels = F.one_hot(mask * known, logits.size(1)).permute(0, 3, 1, 2) * known.unsqueeze(1)
        probability = logits.softmax(1) * known.unsqueeze(1)
        dice = (2 * (probability * labels).sum((0, 2, 3)) + 1) / ((probability + labels).sum((0, 2, 3)) + 1)
        return F.cross_entropy(logits, mask, ignore_index=255) + 1 - dice.mean()


class ActorCritic(nn.Module):
    """PPO's clipped objective with a value loss and an entropy bonus."""

    def __init__(self, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.Tanh())
        self.policy, self.value = nn.Linear(24, actions), nn.Linear(24, 1)

    def forward(self, rollout):
        x = self.body(rollout["observation"])
        log_probability = F.log_softmax(self.policy(x), dim=-1)
        chosen = log_probability.gather(-1, rollout["action"][:, None]).squeeze(-1)
        ratio = torch.exp(chosen - rollout["old_log_probability"])
        advantage = rollout["advantage"]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        entropy = -(log_probability.exp() * log_probability).sum(-1)
        return F.mse_loss(self.value(x).squeeze(-1), rollout["returns"]) - clipped.mean() - 0.01 * entropy.mean()


def labelled(n):
    label = integers(5, n)
    label[0] = 1  # at least one label must count
    return (normal(n, 12), label), label


def views(n):
    x = normal(n, 12)
    return (x + 0.1 * normal(n, 12), x + 0.1 * normal(n, 12)), x


def triplets(n):
    anchor = normal(n, 12)
    return (anchor, anchor + 0.3 * normal(n, 12), normal(n, 12)), anchor


def tagged(n):
    tags = integers(4, n, 6)
    return {"words": integers(20, n, 6), "tags": tags, "there": torch.arange(6) < integers(7, n, 1, least=2)}, tags


def partly_labelled(n):
    mask = torch.where(uniform(n, 8, 8) < 0.1, 255, integers(3, n, 8, 8))
    return (normal(n, 1, 8, 8), mask), mask


def rollout(n):
    action = integers(4, n)
    return ({"observation": normal(n, 12), "action": action, "old_log_probability": -1.4 + 0.05 * normal(n),
             "advantage": normal(n), "returns": normal(n)},), action


program("contrastive_views", "loss", ContrastiveViews, views, loss="output")
program("triplet", "loss", Triplet, triplets, loss="output")
program("arcface", "loss", ArcFace, labelled, loss="output")
program("distillation", "loss", Distillation, labelled, loss="output")
program("weighted_classes", "loss", WeightedClasses, labelled, loss="output")
program("conditional_random_field", "loss", ConditionalRandomField, tagged, loss="output")
program("segmentation_dice", "loss", Segmentation, partly_labelled, loss="output", batch=4)
program("actor_critic", "loss", ActorCritic, rollout, loss="output")
