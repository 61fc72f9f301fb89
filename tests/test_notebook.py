"""The notebook runs from its first cell to its last; here with little text, so what it translates makes no sense."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks are read by nbformat")
nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient")
pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

NOTEBOOK = Path(__file__).parents[1] / "docs" / "first_steps.ipynb"
SIZES = "EPOCHS, PAIRS = 6, 23_523"


def test_notebook_trains_translates_and_shows_attention(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # Committed without them.
    (first,) = (cell for cell in notebook.cells if SIZES in cell.source)
    first.source = first.source.replace(SIZES, "EPOCHS, PAIRS = 1, 2_000")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    texts = [
        "".join(output.get("text", "") for output in cell.outputs if output.get("name") == "stdout") for cell in cells
    ]
    pictures = [any("image/png" in output.get("data", {}) for output in cell.outputs) for cell in cells]
    (translations,) = (text for text in texts if text.startswith("我爱水课 -> "))
    assert len(translations.splitlines()) == 6
    assert sum(pictures) == 4  # The learning rate, the positions, the map of attention, the alignment.
