"""The page itself, made of Gradio's components."""

from __future__ import annotations

from typing import Any

import yaml

from keras_transformer.decoding.texts import is_blank, split_lines
from keras_transformer.demo.engines import Engine
from keras_transformer.demo.markup import SCRIPT, STYLE, look_as_html

_ROWS = ["translation", "score", "ended"]


def make_page(engine: Engine):
    """A page for one model.

    Args:
        engine: The model.

    Returns:
        The pair `(blocks, options)`: a `gradio.Blocks`, and arguments of its `launch` that make it look as it should.

    Raises:
        ImportError: If Gradio is missing.
    """
    gr = _gradio()
    with gr.Blocks(title=engine.title, analytics_enabled=False) as blocks:
        gr.Markdown(f"# {engine.title}")
        looks = gr.State({})
        text = gr.Textbox(label="Text", lines=3, autofocus=True, elem_id="kt-text")
        button = gr.Button("Translate", variant="primary", elem_id="kt-translate")
        with gr.Accordion("How to search", open=False):
            beam_size = gr.Slider(1, 16, value=4, step=1, label="Beam size (1 is greedy search)")
            n_best = gr.Slider(1, 16, value=4, step=1, label="Translations, at most the beam size")
            length_penalty = gr.Slider(0, 2, value=0.6, step=0.1, label="Length penalty (more for longer translations)")
            max_length = gr.Slider(1, 500, value=200, step=1, label="Most tokens")
            target_prefix = gr.Textbox(label="Begin the translation with")
        if engine.examples:
            gr.Examples([[example] for example in engine.examples], [text], label="Examples")
        table = gr.Dataframe(headers=_ROWS, interactive=False, wrap=True, label="Translations", elem_id="kt-best")
        line = gr.Dropdown([], label="Look at", visible=False)
        layer = gr.Dropdown(["mean"], value="mean", label="Attention of", visible=False)
        look = gr.HTML(elem_id="kt-look")
        if engine.card:
            with gr.Accordion("About the model", open=False):
                card = yaml.safe_dump(engine.card, allow_unicode=True, sort_keys=False, width=100)
                gr.Code(card, language="yaml", interactive=False)

        def translate(text, beam_size, n_best, length_penalty, max_length, target_prefix):
            if not text or all(map(is_blank, split_lines(text)[0])):
                raise gr.Error("There is no text to translate.", print_exception=False)
            options: dict[str, Any] = {"beam_size": int(beam_size), "n_best": min(int(n_best), int(beam_size))}
            options |= {"max_length": int(max_length), "length_penalty": float(length_penalty)}
            try:
                found = engine.translate(text, **options, target_prefix=target_prefix or "")
                seen = _looks(engine, text, found)
            except ValueError as error:
                raise gr.Error(str(error), print_exception=False) from error
            rows = [[one.text, f"{one.score:.3f}", "no" if one.truncated else "yes"] for one in found]
            lines, layers = list(seen), list(seen[next(iter(seen))].attention) if seen else ["mean"]
            return (
                rows,
                seen,
                gr.Dropdown(lines, value=lines[0] if lines else None, visible=len(lines) > 1),
                gr.Dropdown(layers, value="mean", visible=len(layers) > 1),
                look_as_html(seen[lines[0]]) if lines else "",
            )

        def look_at(looks, line, layer):
            return look_as_html(looks[line], layer or "mean") if line in looks else ""

        inputs = [text, beam_size, n_best, length_penalty, max_length, target_prefix]
        outputs = [table, looks, line, layer, look]
        gr.on([button.click, text.submit], translate, inputs, outputs)
        gr.on([line.input, layer.input], look_at, [looks, line, layer], look)
    # System fonts: the page asks nothing of other hosts.
    theme = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    return blocks, {"css": STYLE, "js": SCRIPT, "theme": theme, "footer_links": []}


def _looks(engine, text, found):
    """How the model sees all translations of one line, or each line of the best one, by what is seen."""
    sources = split_lines(text)[0]
    places = [place for place, source in enumerate(sources) if not is_blank(source)]
    if len(places) == 1:
        targets = [split_lines(one.text)[0][places[0]] for one in found]
        return {target: engine.look(sources[places[0]], target) for target in targets}
    targets = split_lines(found[0].text)[0]
    return {f"{place + 1}. {targets[place]}": engine.look(sources[place], targets[place]) for place in places}


def _gradio():
    try:
        import gradio
    except ImportError as error:
        raise ImportError("The demo page needs Gradio: pip install 'keras_transformer[demo]'") from error
    return gradio
