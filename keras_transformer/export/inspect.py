"""What is in an exported folder, read without running anything of it."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import yaml

from keras_transformer.export.card import CARD_FILE, read_card


def describe_saved_model(folder: str | Path) -> str:
    """The card, signatures, operations and sizes of a SavedModel, as YAML.

    Args:
        folder: A version folder, or that of the model, whose newest version is taken.

    Raises:
        ValueError: If there is no SavedModel.
    """
    path = version_folder(Path(folder))
    meta_graph = read_meta_graph(path)
    content: dict[str, Any] = {"folder": str(path)}
    if (path / CARD_FILE).exists():
        content["card"] = {key: value for key, value in read_card(path).items() if key != "signatures"}
    content["signatures"] = {
        name: {"inputs": _specs(definition.inputs), "outputs": _specs(definition.outputs)}
        for name, definition in sorted(meta_graph.signature_def.items())
        if not name.startswith("__")
    }
    content["operations"] = dict(sorted(operations(meta_graph).items()))
    files = sorted(file for file in path.rglob("*") if file.is_file())
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in files}
    content["bytes"] = {**sizes, "in all": sum(sizes.values())}
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=120)


def read_meta_graph(folder: Path):
    """The `MetaGraphDef` of a version folder. Raises ValueError, naming the file, where there is none."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    path, saved = folder / "saved_model.pb", saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString(path.read_bytes())
        return saved.meta_graphs[0]
    except (OSError, DecodeError, IndexError) as error:
        raise ValueError(f"Could not read a SavedModel from {path}: {error}") from error


def operations(meta_graph) -> collections.Counter:
    """How many operations of each kind a graph and its functions have."""
    graph = meta_graph.graph_def
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    functions = {function.signature.name for function in graph.library.function}
    return collections.Counter(node.op for node in nodes if node.op not in functions)


def version_folder(folder: Path) -> Path:
    """A folder of a version, or of a model, whose newest it gives. Raises ValueError where there is no SavedModel."""
    if (folder / "saved_model.pb").exists():
        return folder
    versions = [path for path in folder.glob("*") if path.name.isdecimal() and (path / "saved_model.pb").exists()]
    if not versions:
        raise ValueError(f"There must be a saved_model.pb, or folders of versions that have one. Received: {folder}")
    return max(versions, key=lambda path: int(path.name))


def _specs(tensors):
    from tensorflow.core.framework import types_pb2

    return {
        name: f"{types_pb2.DataType.Name(tensor.dtype).removeprefix('DT_').lower()} "
        f"{[dimension.size for dimension in tensor.tensor_shape.dim]}"
        for name, tensor in sorted(tensors.items())
    }
