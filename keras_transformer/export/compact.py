"""A graph on disk without what it can do without."""

from __future__ import annotations

from pathlib import Path

from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2


def compact_saved_model(folder: Path) -> None:
    """Writes `saved_model.pb` anew: equal constants once, short names, no shapes that nobody reads.

    TensorFlow writes the full path of the layer into the name of every operation, and that name again wherever its
    result is used; and the shape of each result, which whoever loads the graph infers anew. What the signatures are
    called, and the variables, stays. Of the three quarters that go, names are the most.

    Args:
        folder: What `tf.saved_model.save` wrote.
    """
    path, saved = folder / "saved_model.pb", saved_model_pb2.SavedModel()
    saved.ParseFromString(path.read_bytes())
    for meta_graph in saved.meta_graphs:
        called_from_python = set(meta_graph.object_graph_def.concrete_functions)
        for node in meta_graph.graph_def.node:
            node.attr.pop("_output_shapes", None)
        for function in meta_graph.graph_def.library.function:
            renamed = _shorten_arguments(function, function.signature.name in called_from_python)
            _compact_nodes(function, renamed)
    path.write_bytes(saved.SerializeToString(deterministic=True))


def _shorten_arguments(function, called_from_python):
    """Gives the arguments of a `FunctionDef` short names; returns these by the old ones.

    Python finds the arguments that a caller gives by their names, and the weights by their order.
    """
    renamed = {}
    for number, argument in enumerate(function.signature.input_arg):
        if called_from_python and argument.type != types_pb2.DT_RESOURCE:
            continue
        renamed[argument.name] = argument.name = f"a{number}"
        argument.ClearField("handle_data")
        if number in function.arg_attr:
            function.arg_attr[number].attr.pop("_output_shapes", None)
            function.arg_attr[number].attr.pop("_user_specified_name", None)
    if not called_from_python:
        function.attr.pop("_input_shapes", None)
    return renamed


def _compact_nodes(function, renamed):
    """Compacts the operations of a `FunctionDef`; `renamed` has the new names of its arguments."""
    names: dict[str | bytes, str] = {}
    kept: list = []
    for node in function.node_def:
        is_constant = node.op == "Const" and not node.input
        value = node.attr["value"].SerializeToString(deterministic=True) if is_constant else node.name
        if value in names:
            renamed[node.name] = names[value]
            continue
        renamed[node.name] = names[value] = f"n{len(kept)}"
        kept.append(type(node).FromString(node.SerializeToString()))
    for node in kept:
        node.name, inputs = renamed[node.name], [_renamed(reference, renamed) for reference in node.input]
        del node.input[:]
        node.input.extend(dict.fromkeys(inputs) if node.op == "NoOp" else inputs)
        for name in ("_output_shapes", "_class"):  # The latter ties it to others on a device.
            node.attr.pop(name, None)
    del function.node_def[:]
    function.node_def.extend(kept)
    for results in (function.ret, function.control_ret):
        for key, reference in list(results.items()):
            results[key] = _renamed(reference, renamed)


def _renamed(reference, renamed):
    """A reference to a result, `name:output:0`, to an argument, `name`, or to what comes first, `^name`."""
    control = "^" if reference.startswith("^") else ""
    name, colon, rest = reference.removeprefix("^").partition(":")
    return control + renamed.get(name, name) + colon + rest
