"""Export of what a training run made, with a card that says how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_transformer.checkpoints import read_json
from keras_transformer.decoding import Translator
from keras_transformer.evaluate import Score
from keras_transformer.export.saved_model import check_target, export_options
from keras_transformer.training.scoring import evaluation_pairs, run_recipe, score_model


def export_run(
    run: Path,
    folder: Path,
    search: dict[str, Any],
    dtype: str = "float32",
    license: str | None = None,
    test: dict[str, Any] | None = None,
    **arguments,
) -> tuple[Path, dict[str, Any]]:
    """Exports a run or a preset as `Translator.export` does.

    Args:
        run: The folder of a run or a preset.
        folder: Where to.
        search: Fields of `SearchOptions` for `serving_default`.
        dtype: As of `Translator.export`.
        license: For the card.
        test: Arguments of `evaluation_pairs`, of what to score the export on: in float32 and, if that is another, in
            `dtype`, so that the card says what was lost. None for no scores but those of the run.
        **arguments: As of `Translator.export`.

    Returns:
        The version's folder, and the scores on the card.

    Raises:
        ValueError: As `Translator.export`, or if there is nothing to score on.
    """
    export_options(search)  # Scoring takes its time.
    check_target(folder, arguments.get("version"))
    translator, recipe = Translator.from_preset(run, dtype="float32"), run_recipe(run)
    scores = _scores_of_run(run)
    if test is not None:
        try:
            pairs, language = evaluation_pairs(run, **test)
        except ValueError as error:
            raise ValueError(
                f"There is nothing to score the export on (--no-score exports without): {error}"
            ) from error
        for one in dict.fromkeys(("float32", dtype)):
            scored = translator if one == "float32" else Translator.from_preset(run, dtype=one)
            of_export = score_model(scored, pairs, language, **search)
            scores[f"export in {one}"] = {name: str(score) for name, score in of_export.items()}
    card: dict[str, Any] = {"license": license or "not stated"}
    if recipe:
        card["languages"] = {"source": recipe.data.source_language, "target": recipe.data.target_language}
    card["scores"] = scores
    if examples := _examples_of_run(run):
        card["examples"] = examples
    return translator.export(folder, dtype=dtype, card=card, **arguments, **search), scores


def _examples_of_run(run):
    """Texts to try the model on; none of a preset."""
    path = run / "scores.json"
    examples = read_json(path).get("examples", []) if path.exists() else []
    return examples if isinstance(examples, list) and all(isinstance(text, str) for text in examples) else []


def _scores_of_run(run):
    """What training found, by greedy search."""
    path = run / "scores.json"
    content = read_json(path) if path.exists() else {}
    try:
        return {
            f"training, {name}": {key: str(Score(**score)) for key, score in scores.items()}
            for name, scores in content.items()
            if isinstance(scores, dict)
        }
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no scores of a run: {error}") from error
