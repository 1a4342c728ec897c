"""The one catalogue of mistakes: each has one name and one sentence, wherever a reader meets it.

Data only. The museum, the exercises, the wrong solutions of the coursework, the question bank, the
walk and `examine` refer to a mistake by its name and add what only they can say.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A mistake that people make when they write attention.

    `name` is fixed: reports, labels and data refer to it. `sentence` says what is wrong and is true
    wherever the mistake occurs. `exhibit` is the label of the place in the book that takes it
    apart, or nothing.
    """

    name: str
    sentence: str
    exhibit: str = ""


_ALL = (
    Mistake(
        "softmax-over-queries",
        "The weights sum to 1 over queries, not over the keys of each query.",
        "trap-01",
    ),
    Mistake(
        "softmax-over-heads",
        "The weights sum to 1 over heads, not over the keys of each query.",
    ),
    Mistake(
        "softmax-over-batch",
        "The weights sum to 1 over batch, not over the keys of each query.",
        "trap-02",
    ),
    Mistake(
        "softmax-over-everything",
        "The weights sum to 1 over everything, not over the keys of each query.",
    ),
    Mistake(
        "softmax-twice",
        "The softmax is taken twice: the weights are flattened.",
        "trap-25",
    ),
    Mistake("softmax-missing", "The scores themselves serve as weights."),
    Mistake(
        "argmax-for-softmax",
        "Each row gives all its weight to one key: take the softmax, not the maximum.",
    ),
    Mistake(
        "log-softmax-for-softmax",
        "These are the logarithms of the weights: take the exponential.",
    ),
    Mistake("sigmoid-for-softmax", "Each weight is a sigmoid, so a row does not sum to 1."),
    Mistake("normalisation-missing", "The exponentials are not divided by their sum."),
    Mistake(
        "online-softmax-no-rescale",
        "Block by block the largest score grows, and what was summed before is not rescaled.",
    ),
    Mistake(
        "scale-missing",
        "The scale is missing: these are plain dot products.",
        "trap-17",
    ),
    Mistake("scale-sqrt-d-model", "The root is of the size of all heads together.", "trap-17"),
    Mistake(
        "scale-twice",
        "Divided by the size, not by its root.",
        "trap-17",
    ),
    Mistake(
        "scale-multiplied",
        "Multiplied by the root of the size: divide by it.",
        "trap-17",
    ),
    Mistake(
        "scale-sqrt-keys", "Divided by the root of the number of keys, not of the size.", "slip-b2"
    ),
    Mistake(
        "scale-sqrt-queries",
        "Divided by the root of the number of queries, not of the size.",
        "slip-b2",
    ),
    Mistake("cosine-for-dot", "Queries and keys are normalised before their product."),
    Mistake("distance-for-dot", "Minus half the squared distance is the score."),
    Mistake("score-sign", "The sign is wrong: similar vectors must have a high score."),
    Mistake("relu-on-scores", "Negative scores are set to 0: leave them."),
    Mistake(
        "scores-transposed",
        "The scores are transposed: rows are for queries, columns for keys.",
    ),
    Mistake("first-example-for-all", "All examples use the keys of the first one."),
    Mistake("examples-summed-in-scores", "The scores are summed over the examples."),
    Mistake("values-for-keys", "The values are scored in place of the keys."),
    Mistake("keys-for-values", "The keys are averaged in place of the values."),
    Mistake("queries-for-keys", "The queries are scored against themselves.", "three-uses"),
    Mistake(
        "weights-transposed",
        "The values are summed with the columns of the weights.",
        "slip-c10",
    ),
    Mistake(
        "causal-aligned-to-first",
        "Query i sees the keys 0…i, though the last query is the present one.",
        "causal-alignment",
    ),
    Mistake("causal-strict", "A position does not see itself.", "slip-c11"),
    Mistake("causal-one-too-generous", "A position sees the one after it.", "slip-c11"),
    Mistake(
        "causal-transposed",
        "A position sees itself and what comes after, not before.",
        "slip-c11",
    ),
    Mistake("causal-ignored", "The causal rule has no effect.", "slip-c11"),
    Mistake(
        "causal-restarts-per-chunk",
        "The causal rule counts the positions of each chunk from the chunk's own beginning.",
        "slip-c11",
    ),
    Mistake("mask-ignored", "Nothing is masked: every key gets weight."),
    Mistake(
        "mask-polarity",
        "The mask is the wrong way round: the masked keys get the weight.",
        "trap-20",
    ),
    Mistake(
        "mask-after-softmax",
        "The mask comes after the softmax: the rows no longer sum to 1.",
        "trap-03",
    ),
    Mistake(
        "mask-times-scores",
        "The masked scores become 0, which still gets weight: fill with −inf.",
        "trap-04",
    ),
    Mistake(
        "fill-added-to-scores",
        "The mask's ones are added to the scores and hide nothing.",
    ),
    Mistake("mask-times-infinity", "0 times infinity is NaN.", "trap-11"),
    Mistake(
        "fill-zero",
        "The masked scores become a number near 0, which still gets weight: fill with −inf.",
        "trap-05",
    ),
    Mistake(
        "fill-too-small",
        "The number that you fill with is not low enough: a masked key can get weight. Fill "
        "with −inf.",
        "trap-06",
    ),
    Mistake("fill-sign", "The fill is large and positive."),
    Mistake("mask-on-query-axis", "The mask hides queries, not keys.", "trap-18"),
    Mistake("mask-of-first-example", "All examples use the mask of the first."),
    Mistake("length-one-too-few", "One key too few: the last real key is masked."),
    Mistake(
        "length-one-too-many",
        "One key too many: counted from 0, the key at place `valid_lens` is already padding.",
    ),
    Mistake(
        "length-from-the-end",
        "The lengths are counted from the end: the first keys are the real ones.",
        "left-padding",
    ),
    Mistake(
        "lengths-in-wrong-order",
        "The lengths are repeated for the heads in the wrong order.",
        "trap-16",
    ),
    Mistake("empty-row-nan", "A query without any key gets NaN.", "trap-13"),
    Mistake(
        "empty-row-uniform",
        "A query without any key gets the mean of all values, padding included.",
        "trap-09",
    ),
    Mistake(
        "heads-by-view",
        "Heads are cut along the sequence: a view in place of a transposition.",
        "trap-14",
    ),
    Mistake(
        "merge-without-transpose",
        "The heads are joined by a view that mixes positions.",
        "trap-14",
    ),
    Mistake("heads-averaged", "The heads are averaged.", "output-projection"),
    Mistake("heads-share-weights", "All heads share one set of matrices: each needs its own."),
    Mistake(
        "attention-between-heads",
        "Each position attends from head to head, not from position to position.",
        "slip-c7",
    ),
    Mistake(
        "kv-heads-interleaved-wrongly",
        "Query head i uses key head i mod G, not i // group.",
        "fewer-kv-heads",
    ),
    Mistake("key-map-unused", "The keys are projected with the queries' matrix."),
    Mistake("value-map-unused", "The values are projected with the keys' matrix."),
    Mistake("values-not-projected", "The values are not projected."),
    Mistake(
        "output-projection-missing",
        "The output projection is never applied.",
        "output-projection",
    ),
    Mistake(
        "output-projection-twice",
        "The output projection is applied twice.",
        "output-projection",
    ),
    Mistake("bias-forgotten", "The biases are never added."),
    Mistake(
        "memory-ignored-in-cross",
        "Keys come from the queries' sequence, not from the memory.",
        "three-uses",
    ),
    Mistake(
        "memory-values-ignored-in-cross",
        "Values come from the queries' sequence, or the keys', not from their own.",
        "three-uses",
    ),
    Mistake("q-k-swapped-in-cross", "Queries come from the memory.", "three-uses"),
    Mistake(
        "batch-and-length-mixed",
        "The examples attend to one another: batch and length are mixed up.",
        "trap-21",
    ),
    Mistake("dropout-in-eval", "Two calls in eval() differ.", "dropout-in-eval"),
    Mistake("writes-to-input", "An argument is changed by the call.", "trap-08"),
    Mistake(
        "overflow-large-scores",
        "The exponentials overflow or vanish: subtract the largest allowed score of each row "
        "first.",
    ),
    Mistake(
        "max-not-per-row",
        "One largest score is subtracted from all rows: rows far below it vanish. Each row "
        "needs its own.",
    ),
    Mistake("dtype-changed", "float64 does not come back as float64, or cannot be given."),
    Mistake("fill-not-in-half", "The fill is no number of float16.", "trap-10"),
    Mistake("batch-of-one", "A batch of one fails: a squeeze removes too much."),
    Mistake(
        "empty-row-nan-gradient",
        "The output of an empty row is mended, and its gradient is NaN.",
        "trap-12",
    ),
    Mistake("remembers-last-call", "A call changes the answer of the next."),
    Mistake(
        "global-state-changed",
        "A call sets something that the whole process shares, such as the random seed.",
    ),
    Mistake("gradient-missing", "The output depends on an input to which no gradient flows."),
    Mistake("noncontiguous-wrong", "Transposed inputs give another answer."),
    Mistake("examples-mixed", "An example's output depends on the others.", "trap-21"),
    Mistake("masked-key-has-influence", "A hidden key changes the output."),
    Mistake("order-of-keys-matters", "Keys in another order give another output.", "order-blind"),
    Mistake("future-seen", "Every output depends on all later tokens.", "trap-20"),
    Mistake("past-ignored", "No output depends on earlier tokens."),
    Mistake(
        "positions-missing",
        "The order of the earlier tokens makes no difference.",
        "order-blind",
    ),
    Mistake("cache-differs", "Decoding with the cache gives other logits.", "key-value-cache"),
    Mistake(
        "positions-restart-with-cache",
        "With a cache, each new token is at one and the same position, such as 0.",
        "key-value-cache",
    ),
    Mistake(
        "cache-position-off-by-one",
        "With a cache, a token stands one place off.",
        "key-value-cache",
    ),
    Mistake(
        "cache-forgets",
        "With a cache, the earlier tokens have no influence.",
        "key-value-cache",
    ),
    Mistake(
        "cache-chunk-not-causal",
        "Several tokens given to a cache at once see one another's future.",
        "causal-alignment",
    ),
    Mistake(
        "cache-keeps-across-calls",
        "A new text begins with the cache of the last.",
        "cache-may-keep",
    ),
    Mistake(
        "left-padding-changes-answer",
        "Padding on the left changes the answer.",
        "left-padding",
    ),
    Mistake(
        "rotation-mixed-pairing",
        "Angles are laid out for one pairing of features and applied to the other.",
    ),
    Mistake("rotation-sign", "Both halves get the same sign: no rotation."),
    Mistake("rotation-exponent", "The frequencies fall at the wrong rate."),
    Mistake(
        "rotation-over-wrong-axis",
        "The angle grows along heads or batch, not along the sequence.",
        "trap-21",
    ),
    Mistake(
        "rotation-ignores-positions",
        "The positions given make no difference.",
        "key-value-cache",
    ),
    Mistake("rotation-scales", "The rotated vectors change their length."),
    Mistake(
        "rotation-position-off",
        "The positions given are used, but shifted.",
        "key-value-cache",
    ),
    Mistake("rotation-twice", "Rotated twice."),
    Mistake("rotation-missing", "Queries and keys are not rotated."),
    Mistake("rotation-base", "The rotation has another base than in training."),
    Mistake(
        "rotation-other-pairing",
        "The rows of the projections are ordered for one pairing of features, "
        "and the rotation uses the other.",
    ),
    Mistake("norm-epsilon", "The norms add another epsilon than in training."),
    Mistake("norm-gain-missing", "The learned factors of a norm are left out."),
    Mistake("last-norm-missing", "The norm before the logits is left out."),
    Mistake("norms-exchanged", "The two norms of a layer have changed places."),
    Mistake("output-projection-transposed", "The output projection is applied transposed."),
    Mistake("gate-and-up-exchanged", "The activation is applied to up, not to gate."),
    Mistake("leading-space-missing", "No space is put in front of the text."),
    Mistake("pieces-not-merged", "Each character is a token of its own."),
)

#: Every mistake by its name, in the order in which an implementation can make them.
MISTAKES = {mistake.name: mistake for mistake in _ALL}
