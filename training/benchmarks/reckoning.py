"""What training would take on machines that were not measured: counted operations and bytes, stated assumptions.

    python training/benchmarks/reckoning.py

Nothing here was run on a GPU. Every figure follows from the model's sizes and from `Machine`.
"""

from __future__ import annotations

import dataclasses
import sys

from training_peers import operations_per_token

# Section 5.1 of the paper: tokens of each side in a batch; section 5.2: updates.
BATCH, UPDATES = 25_000, {"base": 100_000, "big": 300_000}
PAPER_HOURS = {"base": 12.0, "big": 84.0}  # On 8 P100: 12 hours, 3.5 days.
PAPER_SECONDS, PAPER_GPUS, PAPER_OPERATIONS = {"base": 0.4, "big": 1.0}, 8, 9.5e12  # Of a step; of a P100 (table 2).
VOCABULARY, LENGTH = 37_000, 28  # Joint BPE of WMT14 English-German, and about the mean length of its sentences.
# Bytes for each parameter in mixed precision: float32 weight, its gradient, and Adam's two moments.
STATE_BYTES = 16
# Ott et al. (2018), "Scaling Neural Machine Translation": batches of some 400,000 tokens train as well.
LARGE_BATCH = 400_000


@dataclasses.dataclass(frozen=True)
class Machine:
    """A kind of GPU and how several are joined. Assumptions, not measurements.

    Attributes:
        name: What it is.
        operations: Dense bfloat16 operations a second that its maker names.
        share: Share of them that a training step is assumed to reach.
        within: Bytes a second that a GPU sends to others of its machine, one way.
        between: Bytes a second to other machines.
        per_machine: GPUs of one machine.
        latency: Seconds that a step of an all-reduce waits, whatever its size.
        launch: Seconds that a training step takes at least, since the host starts each of its operations.
    """

    name: str = "H100 SXM"
    operations: float = 989e12
    share: float = 0.35
    within: float = 450e9
    between: float = 50e9
    per_machine: int = 8
    latency: float = 10e-6
    launch: float = 15e-3


def parameters(size: str) -> int:
    """Weights of a preset with one matrix for both embeddings and the output (section 3.4)."""
    from keras_transformer.models import TransformerConfig

    config = TransformerConfig.from_preset(size, VOCABULARY)
    width, inner = config.model_dim, config.intermediate_dim
    attention = 4 * (width * width + width)
    feed_forward = 2 * width * inner + inner + width
    encoder = config.encoder_layers * (attention + feed_forward + 2 * 2 * width)
    decoder = config.decoder_layers * (2 * attention + feed_forward + 3 * 2 * width)
    return VOCABULARY * width + encoder + decoder


def all_reduce_seconds(size: str, gpus: int, machine: Machine) -> float:
    """Time to add float32 gradients over all GPUs in a ring: 2 (n - 1) / n of their bytes pass the slowest link."""
    if gpus == 1:
        return 0.0
    link = machine.within if gpus <= machine.per_machine else machine.between
    return 2 * (gpus - 1) / gpus * 4 * parameters(size) / link + 2 * (gpus - 1) * machine.latency


def activation_bytes(size: str, tokens: int) -> int:
    """What a step keeps for its backward pass, about, in bfloat16: outputs of all products.

    Scores of attention are as many as tokens times length for each head. Logits there are of one chunk at a time: with
    their exponentials 12 bytes each.
    """
    from keras_transformer.models import TransformerConfig
    from keras_transformer.models.projected_loss import CELLS_ON_GPU

    config = TransformerConfig.from_preset(size, VOCABULARY)
    width, inner = config.model_dim, config.intermediate_dim
    attention = 6 * width + 2 * config.num_heads * LENGTH
    block = attention + 2 * inner + 4 * width
    layers = config.encoder_layers * block + config.decoder_layers * (block + attention + 2 * width)
    return 2 * layers * tokens + 12 * min(tokens * VOCABULARY, CELLS_ON_GPU)


def step(size: str, gpus: int, batch: int, machine: Machine) -> dict[str, float]:
    """Seconds and bytes of one update on each GPU, the all-reduce after the backward pass rather than beside it."""
    tokens = batch / gpus
    operations = operations_per_token(size, VOCABULARY, LENGTH) * tokens
    compute = max(operations / (machine.operations * machine.share), machine.launch)
    reduce = all_reduce_seconds(size, gpus, machine)
    return {
        "compute": compute,
        "all_reduce": reduce,
        "tokens_per_second": batch / (compute + reduce),
        "bytes": STATE_BYTES * parameters(size) + activation_bytes(size, int(tokens)),
        "hours": UPDATES[size] * BATCH / batch * (compute + reduce) / 3600,
    }


def share_of_paper(size: str) -> float:
    """Share of a P100's operations that the paper's own steps reach by this count: a check of the assumed share."""
    operations = operations_per_token(size, VOCABULARY, LENGTH) * BATCH
    return operations / (PAPER_SECONDS[size] * PAPER_GPUS * PAPER_OPERATIONS)


def table(machine: Machine) -> str:
    """A Markdown table: `base` and `big` on 8, 64 and 512 GPUs, with the paper's batch and with a large one."""
    lines = [
        "| model | GPUs | target tokens in a batch | compute ms | all-reduce ms | target tokens a second | GiB a GPU "
        "| hours for the paper's tokens | the paper, 8 P100 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for size in UPDATES:
        for gpus in (8, 64, 512):
            for batch in (BATCH, LARGE_BATCH):
                one = step(size, gpus, batch, machine)
                lines.append(
                    f"| {size} | {gpus} | {batch:,} | {1e3 * one['compute']:.1f} | {1e3 * one['all_reduce']:.1f} "
                    f"| {one['tokens_per_second']:,.0f} | {one['bytes'] / 2**30:.1f} | {one['hours']:.2f} "
                    f"| {PAPER_HOURS[size]:.0f} hours |"
                )
    return "\n".join(lines)


def assumptions(machine: Machine) -> str:
    """What the table rests on, in a sentence."""
    gbs = [f"{rate / 1e9:.0f} GB/s" for rate in (machine.within, machine.between)]
    shares = [f"{100 * share_of_paper(size):.0f} % ({size})" for size in UPDATES]
    return (
        f"{machine.name}: {machine.operations / 1e12:.0f} TFLOP/s of bfloat16 by its maker, "
        f"{100 * machine.share:.0f} % of it assumed; {gbs[0]} within a machine of {machine.per_machine}, {gbs[1]} "
        f"between machines; {1e3 * machine.launch:.0f} ms a step at least; vocabulary {VOCABULARY:,}, {LENGTH} tokens "
        f"a sentence. By the same count the paper's steps reach {' and '.join(shares)} of a P100."
    )


def main():
    """Prints the assumptions and the table."""
    print(f"{assumptions(Machine())}\n\n{table(Machine())}")


if __name__ == "__main__":
    sys.exit(main())
