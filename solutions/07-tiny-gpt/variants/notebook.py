"""Combine cells of a notebook, with float32 counts, F.embedding and F.dropout."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


# cell 1
VOCAB, CTX = "vocab_size", "n_positions"


def init_(w, std):
    with torch.no_grad():
        return w.normal_(mean=0, std=std)


# cell 5
class GPT(nn.Module):
    """My GPT, see the lecture."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = cfg = config
        E = cfg.n_embd
        blocks = []
        for _ in range(cfg.n_layer):
            blk = Block(E, cfg.n_head, cfg.dropout, cfg.bias)
            init_(blk.attn.c_attn.weight, 0.02)
            init_(blk.mlp.c_fc.weight, 0.02)
            init_(blk.attn.c_proj.weight, 0.02 * (2 * cfg.n_layer) ** -0.5)
            init_(blk.mlp.c_proj.weight, 0.02 * (2 * cfg.n_layer) ** -0.5)
            if cfg.bias:
                for lin in [blk.attn.c_attn, blk.attn.c_proj, blk.mlp.c_fc, blk.mlp.c_proj]:
                    lin.bias.data.fill_(0)
            blocks.append(blk)
        wte = nn.Embedding(getattr(cfg, VOCAB), E)
        wpe = nn.Embedding(getattr(cfg, CTX), E)
        init_(wte.weight, 0.02), init_(wpe.weight, 0.02)
        self.transformer = nn.ModuleDict(
            {
                "wte": wte,
                "wpe": wpe,
                "drop": nn.Dropout(p=cfg.dropout),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(E, eps=1e-5, bias=cfg.bias),
            }
        )
        self.lm_head = nn.Linear(E, cfg.vocab_size, bias=False)
        self.lm_head.weight = wte.weight
        # print(sum(p.numel() for p in self.parameters()))

    # cell 6
    def forward(self, idx, targets=None):
        B, T = idx.shape
        if T > self.config.n_positions:
            raise ValueError(T)
        x = F.embedding(idx, self.transformer.wte.weight)
        x = x + F.embedding(torch.arange(T)[None].repeat(B, 1), self.transformer.wpe.weight)
        x = F.dropout(x, self.config.dropout, self.training)
        for n, blk in enumerate(self.transformer.h):
            x = blk(x)
        x = self.transformer.ln_f(x)
        logits = torch.einsum("btc,vc->btv", x, self.lm_head.weight)
        if targets is not None:
            lp = F.log_softmax(logits, -1)
            t = targets.contiguous().view(-1)
            return logits, F.nll_loss(lp.view(B * T, -1), t)
        return logits, None

    # cell 9
    def generate(self, idx, max_new_tokens):
        flag = self.training
        self.eval()
        y = idx
        for i in range(max_new_tokens):
            with torch.inference_mode():
                out = self(y[:, -self.config.n_positions :])[0]
            probs = torch.softmax(out[:, -1, :], dim=-1)
            y = torch.cat([y, torch.argmax(probs, dim=1).reshape(-1, 1)], dim=-1)
        if flag:
            self.train()
        else:
            self.eval()
        return y


# cell 12
def get_batch(data, n_positions, batch_size, generator=None):
    hi = data.shape[0] - n_positions
    if hi < 1:
        raise ValueError("need more data")
    ix = torch.randint(high=hi, size=(batch_size,), generator=generator).tolist()
    xs = [data[i : i + n_positions + 1] for i in ix]
    xy = torch.vstack(xs)
    return xy[:, :n_positions].clone(), xy[:, 1:].clone()


# cell 13
def bigram_loss(data, vocab_size):
    N = torch.zeros(vocab_size, vocab_size)
    N.index_put_((data[:-1], data[1:]), torch.ones(len(data) - 1), accumulate=True)
    P = N / N.sum(dim=-1, keepdim=True)
    logp = P.log()
    return -torch.mean(logp[data[:-1], data[1:]].double()).item()
