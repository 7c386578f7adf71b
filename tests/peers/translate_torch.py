"""The translate model in PyTorch, written independently of the Rust one: gradients and losses of a dumped run.

Usage: translate_torch.py DUMP [--dtype float64] [--rate 0.5] [--clip 5.0] [--threads N] [--time]

Prints one JSON object: `gradients` of the mean loss of step 1, before clipping (norm, and some values by flat index),
and `losses`, the mean loss over the samples of each step. With `--compare`, for a dump of `--dump_run`: how far the
trainer's own gradient and losses are from these, and the perplexity of the development set after the last step.
"""

import argparse
import json
import math
import pathlib
import time

import torch

SAMPLED_VALUES = 8


def load_parameters(path, dtype):
    """A safetensors file: length of the header, header in JSON, raw little-endian values."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    parameters = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", f"{name} has type {entry['dtype']}"
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(raw[start + begin : start + end]), dtype=torch.float32)
        parameters[name] = values.reshape(entry["shape"]).to(dtype).requires_grad_()
    return parameters


class Translate:
    def __init__(self, config, parameters):
        self.config, self.parameters = config, parameters
        self.samples = config["samples"] if 0 < config["samples"] < config["to_vocab"] else 0

    def linear(self, name, *inputs):
        weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
        return torch.addmm(bias, torch.cat(inputs, 1), weight)

    def gru(self, name, x, state):
        reset, update = torch.sigmoid(self.linear(f"{name}.gates", x, state)).chunk(2, 1)
        candidate = torch.tanh(self.linear(f"{name}.candidate", x, reset * state))
        return update * state + (1 - update) * candidate

    def stack(self, part, x, states):
        for layer, state in enumerate(states):
            states[layer] = x = self.gru(f"{part}.layer{layer}", x, state)
        return x

    def outputs(self, batch):
        """Decoder outputs, one [rows, size] for each position."""
        p, rows, size = self.parameters, batch["rows"], self.config["size"]
        zero = p["attention.score"].new_zeros(rows, size)
        states = [zero] * self.config["layers"]
        encoder = torch.tensor(batch["encoder"]).reshape(batch["source_len"], rows)
        encoded = torch.stack([self.stack("encoder", x, states) for x in p["encoder.embedding"][encoder]], 1)
        keys = encoded @ p["attention.source.weight"]
        first = batch["source_len"] - torch.tensor(batch["source_lengths"])
        hidden = torch.arange(batch["source_len"])[None, :] < first[:, None]
        if self.config["attend_to_padding"]:
            hidden = torch.zeros_like(hidden)
        blind = hidden.all(1, keepdim=True)
        context, outputs = zero, []
        decoder = torch.tensor(batch["decoder"]).reshape(batch["target_len"], rows)
        for embedded in p["decoder.embedding"][decoder]:
            top = self.stack("decoder", self.linear("decoder.input", embedded, context), states)
            query = self.linear("attention.query", *states)
            scores = torch.tanh(keys + query[:, None]) @ p["attention.score"]
            # A source without any word: nothing is seen, the context is zero.
            scores = scores.masked_fill(hidden & ~blind, -math.inf)
            probabilities = torch.softmax(scores, 1).masked_fill(blind, 0.0)
            context = (probabilities[:, :, None] * encoded).sum(1)
            outputs.append(self.linear("decoder.output", top, context))
        return outputs

    def log_expected_count(self, ids, tries):
        """Of TensorFlow's unique log-uniform sampler."""
        ids = ids.to(torch.float64)
        once = torch.log((ids + 2) / (ids + 1)) / math.log(self.config["to_vocab"] + 1)
        return torch.log(-torch.expm1(tries * torch.log1p(-once)))

    def entropy(self, output, targets, candidates):
        weight, bias = self.parameters["projection.weight"], self.parameters["projection.bias"]
        if not self.samples:
            return torch.nn.functional.cross_entropy(output @ weight.t() + bias, targets, reduction="none")
        ids, tries = torch.tensor(candidates["ids"]), candidates["tries"]
        others = output @ weight[ids].t() + bias[ids] - self.log_expected_count(ids, tries).to(output.dtype)
        others = others.masked_fill(ids[None, :] == targets[:, None], -math.inf)
        own = (output * weight[targets]).sum(1) + bias[targets]
        own = own - self.log_expected_count(targets, tries).to(output.dtype)
        return torch.logsumexp(torch.cat([own[:, None], others], 1), 1) - own

    def full_loss(self, batch):
        """Sum over the samples under the full softmax."""
        samples, self.samples = self.samples, 0
        try:
            with torch.no_grad():
                return self.loss(batch, None).item()
        finally:
            self.samples = samples

    def loss(self, batch, negatives):
        """Sum over the samples of a micro-batch."""
        rows, steps = batch["rows"], batch["target_len"]
        targets = torch.tensor(batch["targets"]).reshape(steps, rows)
        weights = torch.tensor(batch["weights"], dtype=self.parameters["attention.score"].dtype).reshape(steps, rows)
        total = 0
        for t, output in enumerate(self.outputs(batch)):
            candidates = negatives["positions"][t] if self.samples else None
            total = total + weights[t] * self.entropy(output, targets[t], candidates)
        return (total / (weights.sum(0) + 1e-12)).sum()


def joined(batches):
    """The micro-batches of a step as one batch: PyTorch is fastest so."""
    batches = [batch for batch in batches if batch["rows"]]
    out = dict(batches[0])
    for name, steps in [("encoder", "source_len"), ("decoder", "target_len"), ("targets", "target_len"), ("weights", "target_len")]:
        parts = [torch.tensor(batch[name]).reshape(batch[steps], batch["rows"]) for batch in batches]
        out[name] = torch.cat(parts, 1).flatten().tolist()
    out["source_lengths"] = [length for batch in batches for length in batch["source_lengths"]]
    out["rows"] = sum(batch["rows"] for batch in batches)
    return out


def summary(gradient):
    flat = gradient.detach().flatten()
    stride = max(1, flat.numel() // SAMPLED_VALUES)
    largest = int(flat.abs().argmax())
    indices = sorted({largest, *range(0, flat.numel(), stride)})
    return {"norm": flat.norm().item(), "values": [[index, flat[index].item()] for index in indices]}


def relative(ours, theirs):
    return ((ours - theirs).norm() / theirs.norm().clamp_min(1e-30)).item()


def apart(losses, reference):
    """The largest relative distance of two runs' losses."""
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference))


def dev_perplexity(dump, run):
    """By bucket, and of all pairs together."""
    buckets = {}
    for line in open(dump / "dev.jsonl"):
        batch = json.loads(line)
        for name in (str(batch["bucket"]), "all"):
            total, rows = buckets.get(name, (0.0, 0))
            buckets[name] = (total + run.model.full_loss(batch), rows + batch["rows"])
    return {name: math.exp(total / rows) for name, (total, rows) in sorted(buckets.items())}


def compare(dump, run, single):
    """The trainer's figures beside ours; `single` is the same run of the peer in float32, as a yardstick for drift."""
    own = load_parameters(dump / "gradient.safetensors", torch.float64)
    worst = max((relative(own[name], gradient.to(torch.float64)), name) for name, gradient in run.first.items())
    told = [json.loads(line)["loss"] for line in open(dump / "ours.jsonl")]
    result = {
        "gradient_apart": worst,
        "losses_apart_in_50_steps": apart(told[:50], run.losses[:50]),
        "losses_apart": apart(told, run.losses),
        "dev_perplexity": dev_perplexity(dump, run),
    }
    if single is not None:
        result["float32_peer_dev_perplexity"] = dev_perplexity(dump, single)
        result["float32_peer_apart_in_50_steps"] = apart(single.losses[:50], run.losses[:50])
    return result


class Run:
    """All steps of a dump, from its initial weights."""

    def __init__(self, dump, dtype, rate, clip):
        config = json.loads((dump / "config.json").read_text())
        parameters = load_parameters(dump / "params.safetensors", dtype)
        self.model = Translate(config, parameters)
        self.losses, self.seconds, self.first = [], [], {}
        with open(dump / "batches.jsonl") as batches, open(dump / "negatives.jsonl") as negatives:
            for batch, candidates in zip(batches, negatives, strict=True):
                self.step(parameters, joined(json.loads(batch)), json.loads(candidates), rate, clip)

    def step(self, parameters, batch, candidates, rate, clip):
        begin = time.perf_counter()
        loss = self.model.loss(batch, candidates) / batch["rows"]
        for parameter in parameters.values():
            parameter.grad = None
        loss.backward()
        if not self.first:
            self.first = {name: parameter.grad.clone() for name, parameter in parameters.items()}
        torch.nn.utils.clip_grad_norm_(parameters.values(), clip)
        with torch.no_grad():
            for parameter in parameters.values():
                parameter -= rate * parameter.grad
        self.losses.append(loss.item())
        self.seconds.append(time.perf_counter() - begin)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("dump", type=pathlib.Path)
    arguments.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    arguments.add_argument("--rate", type=float, default=0.5)
    arguments.add_argument("--clip", type=float, default=5.0)
    arguments.add_argument("--threads", type=int, default=0)
    arguments.add_argument("--time", action="store_true", help="add the seconds of each step")
    arguments.add_argument("--compare", action="store_true", help="compare with what --dump_run wrote of its own run")
    flags = arguments.parse_args()
    if flags.threads:
        torch.set_num_threads(flags.threads)
    run = Run(flags.dump, getattr(torch, flags.dtype), flags.rate, flags.clip)
    gradients = {name: summary(gradient) for name, gradient in sorted(run.first.items())}
    result = {"gradients": gradients, "losses": run.losses}
    if flags.time:
        result["seconds"] = run.seconds
    if flags.compare:
        single = Run(flags.dump, torch.float32, flags.rate, flags.clip) if flags.dtype == "float64" else None
        result = {
            "compared": compare(flags.dump, run, single),
            "seconds": sorted(run.seconds)[len(run.seconds) // 2],
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
