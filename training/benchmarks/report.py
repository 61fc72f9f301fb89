"""Writes the tables and plots of the benchmarks into the page that shows them.

    python training/benchmarks/report.py benchmarks --page docs/performance.md

Reads the JSON that `training.py`, `decoding.py` and `growth.py` wrote. A table stands in the page between
`<!-- NAME -->` and `<!-- end -->`, and is written anew there; what was not measured keeps what it had.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import growth
import reckoning
from decoding import latencies
from harness import table


def main():
    """Rewrites the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder that the benchmarks wrote to")
    parser.add_argument("--page", default="docs/performance.md", type=Path, help="page to write into")
    options = parser.parse_args()
    if not options.page.is_file():
        parser.error(f"there is no page {options.page}")
    text = options.page.read_text(encoding="utf-8")
    for name, content in parts(options.results).items():
        text = replaced(text, name, content)
    options.page.write_text(text, encoding="utf-8")
    (options.page.parent / "pictures").mkdir(exist_ok=True)
    for plot in sorted(options.results.glob("*.svg")):
        shutil.copy(plot, options.page.parent / _picture(plot))


def parts(folder):
    """Texts by the names of their places: a table and a plot for each JSON file, and the reckoning."""
    found = {"reckoning": f"{reckoning.assumptions(reckoning.Machine())}\n\n{reckoning.table(reckoning.Machine())}"}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if path.stem == "growth":
            found[path.stem] = growth.table(content)
        elif "latencies" in content["results"][0]:
            found[path.stem] = latencies(content["results"])
        else:
            found[path.stem] = table(content["results"], content["unit"])
        if path.with_suffix(".svg").exists():
            found[path.stem] += f"\n\n![{path.stem.replace('_', ' ')}]({_picture(path.with_suffix('.svg'))})"
    return found


def _picture(plot):
    """Where a plot lies, as seen from the page."""
    return f"pictures/performance_{plot.name}"


def replaced(text, name, content):
    """The page with new content at a place; unchanged where it has no such place."""
    place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


if __name__ == "__main__":
    sys.exit(main())
