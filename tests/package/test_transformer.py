"""The encoder–decoder: what each position may see, and that the loop teaches it to reverse."""

import math

import hypothesis
import oracles
import pytest
import torch
from cases import LAYOUTS, close, laid_out, refuses, untouched
from hypothesis import strategies as st
from torch import Tensor

from attention_book import ShapeError, Transformer, data, trace, train
from attention_book.data import END, LETTERS, START, reversed_words, words_to_reverse
from attention_book.training import next_token_loss


def model(num_layers: int = 2) -> Transformer:
    torch.manual_seed(0)
    return Transformer(28, 16, 2, 32, num_layers).double().to(data.device).eval()


def words() -> data.Words:
    return reversed_words(["drawer", "tab", "regal"])


def logits_of(transformer: Transformer, batch: data.Words) -> Tensor:
    return transformer(batch.sources, batch.inputs, batch.source_lens, batch.target_lens)


def maps(transformer: Transformer) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    encoder = [layer.self_attention.attention_weights for layer in transformer.encoder]
    decoder = [layer.self_attention.attention_weights for layer in transformer.decoder]
    cross = [layer.cross_attention.attention_weights for layer in transformer.decoder]
    return encoder, decoder, cross


@st.composite
def readings(draw: st.DrawFn) -> tuple[Transformer, list[Tensor | None]]:
    """A small model, and sources, targets and their lengths for it."""
    dtype = draw(st.sampled_from([torch.float64, torch.float32]))
    width, heads = draw(st.sampled_from([(4, 1), (4, 2), (6, 3)]))
    transformer = Transformer(5, width, heads, 3, draw(st.integers(1, 2))).to(dtype).to(data.device)
    for seed, parameter in enumerate(transformer.parameters()):
        numbers = torch.Generator().manual_seed(seed)
        parameter.data = data.normal(*parameter.shape, generator=numbers, dtype=dtype) / 2
    batch, keys, queries = draw(st.integers(0, 3)), draw(st.integers(1, 6)), draw(st.integers(0, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tensors = [
        torch.randint(5, (batch, keys), generator=generator).to(data.device),
        torch.randint(5, (batch, queries), generator=generator).to(data.device),
        torch.randint(0, keys + 1, (batch,), generator=generator).to(data.device),
        torch.randint(0, queries + 1, (batch,), generator=generator).to(data.device),
    ]
    layout = draw(st.sampled_from(LAYOUTS))
    given = [draw(st.booleans()) for _ in range(2)]
    placed = [laid_out(tensor, layout) for tensor in tensors[:2]]
    lens = [n if is_given else None for n, is_given in zip(tensors[2:], given, strict=True)]
    return transformer, [*placed, *lens]


@hypothesis.given(reading=readings())
def test_logits_equal_those_of_the_loops(
    reading: tuple[Transformer, list[Tensor | None]],
) -> None:
    transformer, arguments = reading
    arguments[:2] = [x % 5 for x in arguments[:2]]
    with untouched(*arguments):
        logits = transformer(*arguments)
    # Each normalisation may stretch what was lost by rounding before it.
    close(logits, oracles.transformer(transformer, *arguments), reach=100)


@hypothesis.given(reading=readings(), num_steps=st.integers(1, 4), start=st.integers(0, 4))
def test_writing_takes_the_likeliest_of_the_loops_at_each_step(
    reading: tuple[Transformer, list[Tensor | None]], num_steps: int, start: int
) -> None:
    transformer, (sources, _, source_lens, _) = reading
    transformer.double()
    assert sources is not None
    written = transformer.greedy_decode(sources, source_lens, start=start, num_steps=num_steps)
    assert written.shape == (sources.shape[0], num_steps)
    inputs = torch.cat([torch.full_like(sources[:, :1], start), written[:, :-1]], dim=1)
    logits = oracles.transformer(transformer, sources, inputs, source_lens, None)
    chosen = logits.gather(2, written.unsqueeze(2)).squeeze(2)
    close(chosen, logits.amax(dim=2), reach=100)


@hypothesis.given(
    spelled=st.lists(st.text(LETTERS, min_size=1, max_size=5), min_size=1, max_size=4),
    more=st.integers(0, 2),
)
def test_the_loss_is_the_mean_surprise_of_the_loops(spelled: list[str], more: int) -> None:
    transformer = model(1)
    batch = reversed_words(spelled, longest=max(map(len, spelled)) + more)
    logits = logits_of(transformer, batch).tolist()
    surprises = []
    for rows, word in zip(logits, spelled, strict=True):
        tokens = [LETTERS.index(letter) for letter in reversed(word)] + [END]
        for row, token in zip(rows, tokens, strict=False):
            surprises.append(-math.log(oracles.softmax(row, [True] * len(row))[token]))
    truth = torch.tensor(math.fsum(surprises) / len(surprises), dtype=torch.float64)
    close(next_token_loss(transformer, batch), truth)


@hypothesis.given(num_steps=st.integers(1, 4), warm_up=st.integers(1, 5), rate=st.floats(1e-4, 0.1))
def test_training_takes_as_many_steps_as_asked(num_steps: int, warm_up: int, rate: float) -> None:
    transformer = Transformer(28, 2, 1, 2).double().to(data.device)
    before = [parameter.clone() for parameter in transformer.parameters()]
    drawn = []

    def draw() -> data.Words:
        drawn.append(reversed_words(["ab"]))
        return drawn[-1]

    losses = train(transformer, draw, num_steps, learning_rate=rate, warm_up=warm_up)
    assert len(losses) == len(drawn) == num_steps
    assert all(map(math.isfinite, losses))
    assert not transformer.training
    after = list(transformer.parameters())
    assert all(parameter.isfinite().all() for parameter in after)
    assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_three_maps_follow_their_masks() -> None:
    transformer, batch = model(), words()
    logits_of(transformer, batch)
    for encoder, decoder, cross in zip(*maps(transformer), strict=True):
        assert (encoder[1, :, :, 3:] == 0).all()
        assert (cross[1, :, :, 3:] == 0).all()
        assert (decoder.triu(diagonal=1) == 0).all()
        assert (decoder[1, :, :, 4:] == 0).all()
        assert (decoder[0].diagonal(dim1=-2, dim2=-1) > 0).all()  # the present one is seen
        for weights in (encoder, decoder, cross):
            assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_every_table_holds_and_every_parameter_learns() -> None:
    transformer, batch = model(), words()
    with trace() as shapes:
        loss = next_token_loss(transformer, batch)
    outer = [(step.number, step.name) for step in shapes if step.number.count(".") < 2]
    assert outer == [("1", "loss"), ("1.1", "memory"), ("1.2", "logits")]
    loss.backward()
    for name, parameter in transformer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


def test_training_learns_and_is_the_same_twice() -> None:
    """Words of three letters, for a few seconds: every one of fifty unseen words is reversed."""

    def run() -> tuple[Transformer, list[float]]:
        torch.manual_seed(0)
        transformer = Transformer(28, 32, 2, 64).double().to(data.device)
        generator = torch.Generator().manual_seed(0)
        losses = train(
            transformer, lambda: words_to_reverse(64, longest=3, generator=generator), 150
        )
        return transformer, losses

    transformer, losses = run()
    assert len(losses) == 150
    assert losses[0] > 3
    assert losses[-1] < 0.1
    assert not transformer.training
    unseen = words_to_reverse(50, longest=3, generator=torch.Generator().manual_seed(1))
    written = transformer.greedy_decode(
        unseen.sources, unseen.source_lens, start=START, num_steps=4
    )
    assert torch.equal(written, unseen.outputs)
    if data.device.type == "cpu":  # a GPU adds in no fixed order
        assert run()[1] == losses


def test_training_prints_nothing_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    generator = torch.Generator().manual_seed(0)
    train(model(1), lambda: words_to_reverse(4, generator=generator), 2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["num_steps", "warm_up"])
def test_training_for_no_steps_is_refused(name: str) -> None:
    steps = {"num_steps": 2, "warm_up": 1, name: 0}
    with refuses(ValueError, name, 1, 0):
        train(model(1), words, **steps)


def test_wrong_sizes_are_refused_before_any_arithmetic() -> None:
    with pytest.raises(ValueError, match="num_heads"):
        Transformer(28, 16, 3, 32)
    with pytest.raises(ValueError, match="num_layers"):
        Transformer(28, 16, 2, 32, 0)
    # On a GPU the range of lengths is checked there, and ends the process.
    transformer, batch = model().cpu(), data.Words(*(x.cpu() for x in words()))
    with pytest.raises(ShapeError, match="'batch' is 2 in targets"):
        transformer(batch.sources, batch.inputs[:2])
    with pytest.raises(ValueError, match="source_lens holds 7"):
        transformer(batch.sources, batch.inputs, batch.source_lens + 1)
    with pytest.raises(TypeError, match="sources must hold integers"):
        transformer(batch.sources.double(), batch.inputs)


@pytest.mark.parametrize("wrong", [-1, 28])
def test_a_token_that_the_model_does_not_know_is_named(wrong: int) -> None:
    transformer, tokens = model().cpu(), torch.tensor([[0, 27, wrong], [1, 2, 3]])
    for call in (lambda: transformer(tokens, tokens), lambda: transformer.encode(tokens)):
        with refuses(ValueError, "tokens", wrong, "between 0 and the last of the tokens, 27"):
            call()
