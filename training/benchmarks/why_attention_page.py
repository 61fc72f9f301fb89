"""Tables and plots of what `why_attention.py` has measured, and the page that shows them."""

import json
import re
import shutil

NAMES = {
    "window": "feed-forward, window",
    "state": "GRU, source as first state",
    "context": "GRU, source at every step",
    "attention": "GRU, additive attention",
    "convolution": "convolutions, no attention",
    "transformer": "Transformer",
}
TITLES = {
    "time": "Milliseconds of a training step by length, with the same number of tokens in a batch",
    "memory": "Right tokens of n given back in reverse, in %; in brackets the updates until a model was done",
    "quality": "BLEU of greedy translations",
}
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table(study, results):
    """The Markdown table of a study."""
    return {"time": _time_table, "memory": _memory_table, "quality": _quality_table}[study](results)


def plot(study, results, path):
    """Draws a study as SVG: the same figures give the same file."""
    import matplotlib

    from keras_transformer.visualize.canvas import figure

    picture = figure(10 if study == "quality" else 7, 4)
    {"time": _plot_time, "memory": _plot_memory, "quality": _plot_quality}[study](results, picture)
    with matplotlib.rc_context({"svg.hashsalt": study, "svg.fonttype": "none"}):
        picture.savefig(path, metadata={"Date": None})


def write_page(page, folder):
    """Puts tables between the two marks of a page, and the plots into the folder `pictures` beside it.

    Args:
        page: Path of the page.
        folder: Where `why_attention.py` has written its results.

    Raises:
        ValueError: If the page has no such marks, or a study has no results.
    """
    text = page.read_text(encoding="utf-8")
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"Expected a page with the lines {_BEGIN} and {_END}, once each. Received: {page}")
    missing = [study for study in TITLES if not (folder / f"why_attention_{study}.json").is_file()]
    if missing:
        raise ValueError(f"Expected results of all studies. Received: {folder} without {', '.join(missing)}")
    parts, pictures, seconds = [], page.parent / "pictures", 0.0
    pictures.mkdir(exist_ok=True)
    for study, title in TITLES.items():
        path = folder / f"why_attention_{study}.json"
        results = json.loads(path.read_text(encoding="utf-8"))
        seconds += results["took"]
        drawn = shutil.copyfile(path.with_suffix(".svg"), pictures / f"{path.stem}.svg")
        parts += [f"### {title}", table(study, results), f"![{title}](pictures/{drawn.name})"]
        parts += [_examples(results)] if study == "quality" else []
    machine = results["machine"]
    parts.append(f"All of it took {seconds / 60:.0f} minutes: {', '.join(machine.values())}.")
    measured = "\n\n".join([_BEGIN, *parts, _END])
    page.write_text(re.sub(f"{_BEGIN}.*{_END}", lambda _: measured, text, flags=re.DOTALL), encoding="utf-8")


def _time_table(results):
    lengths = results["lengths"]
    rows = [["", "parameters", *map(str, lengths), f"{lengths[-1]} to {lengths[0]}"]]
    for kind, model in results["models"].items():
        milliseconds = [1000 * seconds for seconds in model["seconds"]]
        ratio = f"{milliseconds[-1] / milliseconds[0]:.1f}"
        rows.append([NAMES[kind], f"{model['parameters']:,}", *(f"{value:.0f}" for value in milliseconds), ratio])
    return _markdown(rows)


def _memory_table(results):
    rows = [["", "parameters", *(f"n = {length}" for length in results["lengths"]), "seconds"]]
    for kind, model in results["models"].items():
        shares = [
            f"{100 * share:.0f}" + (f" ({updates})" if updates < results["updates"] else "")
            for share, updates in zip(model["accuracy"], model["updates"], strict=True)
        ]
        rows.append([NAMES[kind], f"{model['parameters']:,}", *shares, f"{sum(model['seconds']):.0f}"])
    return _markdown(rows)


def _quality_table(results):
    rows = [["", "parameters", f"after {results['updates']} updates", "seconds of these"]]
    rows[0] += [f"after {results['seconds']:.0f} s", "updates in these"]
    for kind, model in results["models"].items():
        updates, seconds = model["same_updates"], model["same_seconds"]
        row = [NAMES[kind], f"{model['parameters']:,}", f"{updates['bleu']:.1f}", f"{updates['seconds']:.0f}"]
        rows.append([*row, f"{seconds['bleu']:.1f}", str(seconds["updates"])])
    return _markdown(rows)


def _examples(results):
    """The first sentences that were held out, and what all models made of them after as many updates."""
    rows = [["", *results["sources"][:3]], ["reference", *results["references"][:3]]]
    rows += [[NAMES[kind], *model["same_updates"]["examples"][:3]] for kind, model in results["models"].items()]
    return _markdown([[cell.replace("|", "\\|") for cell in row] for row in rows])


def _markdown(rows):
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _plot_time(results, picture):
    axes = picture.subplots()
    for kind, model in results["models"].items():
        axes.plot(results["lengths"], [1000 * seconds for seconds in model["seconds"]], **_style(kind))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(results["lengths"], map(str, results["lengths"]))
    title = f"A training step of {results['batch_tokens']:,} tokens on either side"
    axes.set(title=title, xlabel="length of the sentences", ylabel="milliseconds")
    axes.legend(fontsize="small")


def _plot_memory(results, picture):
    axes = picture.subplots()
    for kind, model in results["models"].items():
        axes.plot(results["lengths"], [100 * share for share in model["accuracy"]], **_style(kind))
    axes.axhline(100 / results["tokens"], color="black", linestyle=":", linewidth=1, label="by chance")
    axes.set_xscale("log", base=2)
    axes.set_xticks(results["lengths"], map(str, results["lengths"]))
    axes.set(title=f"The source backwards, after {results['updates']:,} updates", ylim=(0, 103))
    axes.set(xlabel="length of the source, n", ylabel="right tokens, %")
    axes.legend(fontsize="small")


def _plot_quality(results, picture):
    left, right = picture.subplots(1, 2, sharey=True)
    for axes, unit, most in ((left, "updates", results["updates"]), (right, "seconds", results["seconds"])):
        for kind, model in results["models"].items():
            points = [point for point in model["curve"] if point[unit] <= most * 1.05]
            axes.plot([point[unit] for point in points], [point["bleu"] for point in points], **_style(kind))
        axes.set(xlabel="updates" if unit == "updates" else "seconds of training")
    left.set(ylabel="BLEU", title="as many updates")
    right.set(title="as much time")
    left.legend(fontsize="small")


def _style(kind):
    """The same colour for a model in all plots; the Transformer's line stands out."""
    number = list(NAMES).index(kind)
    width = 2.5 if kind == "transformer" else 1.2
    return {
        "color": f"C{number}",
        "marker": "o^vsDo"[number],
        "markersize": 4,
        "linewidth": width,
        "label": NAMES[kind],
    }
