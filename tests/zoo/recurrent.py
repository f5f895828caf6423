"""Defines recurrent networks: those of torch.nn, and loops written out."""
import torch
from torch import nn

from common import integers, normal, padded_ids, program


def sequences(n, classes=4):
    return (normal(n, 9, 6),), integers(classes, n)


def text(n, vocabulary=30, length=8):
    ids = integers(vocabulary, n, length + 1)
    return (ids[:, :-1].contiguous(),), ids[:, 1:].contiguous()


class SequenceClassifier(nn.Module):
    """Classifies the last step of a recurrent layer."""

    def __init__(self, kind, width=16, classes=4, **options):
        super().__init__()
        self.rnn = kind(6, width, batch_first=True, **options)
        self.head = nn.Linear(width * (2 if options.get("bidirectional") else 1), classes)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


class FinalState(nn.Module):
    """Classifies the final states of the upper layer in both directions. Time is the first dimension."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.lstm = nn.LSTM(6, width, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        _, (h, _) = self.lstm(x.transpose(0, 1))
        return self.head(torch.cat([h[-2], h[-1]], dim=-1))


class CharacterModel(nn.Module):
    def __init__(self, vocabulary=30, width=24):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, num_layers=2, dropout=0.0)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        out, _ = self.lstm(self.embedding(ids))
        return self.head(self.norm(out))


class CellLoop(nn.Module):
    """Steps an LSTMCell in Python and masks the state after the end of a sequence."""

    def __init__(self, vocabulary=30, width=16, classes=4):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.cell = nn.LSTMCell(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        h = torch.zeros(ids.size(0), self.width, device=ids.device)
        c = torch.zeros_like(h)
        embedded = self.embedding(ids)
        for step in range(ids.size(1)):
            new_h, new_c = self.cell(embedded[:, step], (h, c))
            going = (ids[:, step] != 0).unsqueeze(1)
            h, c = torch.where(going, new_h, h), torch.where(going, new_c, c)
        return self.head(h)


class Seq2Seq(nn.Module):
    """GRU encoder and decoder with additive attention. The decoder's inputs are the target words (teacher forcing)."""

    def __init__(self, vocabulary=20, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.cell = nn.GRUCell(2 * width, width)
        self.head = nn.Linear(2 * width, vocabulary)

    def forward(self, source, target):
        memory, final = self.encoder(self.embedding(source))
        keys = self.key(memory)
        h = torch.cat([final[0], final[1]], dim=-1)
        logits = []
        for step in range(target.size(1)):
            scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1)))
            context = (scores.softmax(dim=1) * memory).sum(dim=1)
            h = self.cell(torch.cat([self.embedding(target[:, step]), context], dim=1), h)
            logits.append(self.head(torch.cat([h, context], dim=1)))
        return torch.stack(logits, dim=1)


class ConvLstm(nn.Module):
    """Takes frames and predicts the next frame."""

    def __init__(self, width=6):
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(1 + width, 4 * width, 3, padding=1)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, frames):
        n, steps, _, height, columns = frames.shape
        h = frames.new_zeros(n, self.width, height, columns)
        c = torch.zeros_like(h)
        for frame in frames.unbind(1):
            i, f, o, g = self.gates(torch.cat([frame, h], 1)).split(self.width, dim=1)
            c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


class AttentionPooling(nn.Module):
    """Bidirectional GRU with a given initial state, pooled by attention over the steps that are not padding."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.h0 = nn.Parameter(torch.zeros(2, 1, width))
        self.gru = nn.GRU(6, width, bidirectional=True, batch_first=True)
        self.attention = nn.Linear(2 * width, 1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x, lengths):
        out, _ = self.gru(x, self.h0.expand(-1, x.size(0), -1).contiguous())
        there = torch.arange(x.size(1), device=x.device)[None, :] < lengths[:, None]
        weights = self.attention(out).squeeze(-1).masked_fill(~there, float("-inf")).softmax(dim=-1)
        return self.head(torch.bmm(weights.unsqueeze(1), out).squeeze(1)), weights


def seq2seq_data(n):
    words = integers(20, n, 7)
    return (integers(20, n, 6), words[:, :-1].contiguous()), words[:, 1:].contiguous()


def frames(n):
    clip = normal(n, 5, 1, 6, 6)
    return (clip[:, :-1].contiguous(),), clip[:, 1:].mean(1).contiguous()


program("rnn_tanh", "rnn", lambda: SequenceClassifier(nn.RNN), sequences)
program("rnn_relu_two_layers", "rnn", lambda: SequenceClassifier(nn.RNN, num_layers=2, nonlinearity="relu"), sequences)
program("rnn_lstm", "rnn", lambda: SequenceClassifier(nn.LSTM), sequences)
program("rnn_lstm_bidirectional", "rnn", FinalState, sequences)
program("rnn_gru_bidirectional", "rnn", lambda: SequenceClassifier(nn.GRU, num_layers=2, bidirectional=True), sequences)
program("rnn_character_lstm", "rnn", CharacterModel, text)
program("rnn_lstm_cell_loop", "rnn", CellLoop, lambda n: ((padded_ids(30, n, 6),), integers(4, n)))
program("rnn_seq2seq_attention", "rnn", Seq2Seq, seq2seq_data)
program("rnn_conv_lstm", "rnn", ConvLstm, frames, loss="mse", batch=4, other=3)
program("rnn_gru_attention_pooling", "rnn", AttentionPooling,
        lambda n: ((normal(n, 9, 6), integers(10, n, least=1)), integers(4, n)))
