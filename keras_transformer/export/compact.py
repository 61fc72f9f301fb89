"""A graph on disk without what it can do without."""

from __future__ import annotations

import string
from pathlib import Path

from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

_DIGITS = string.digits + string.ascii_lowercase
# Notes of the program that wrote the graph: shapes that whoever loads it infers anew, and what was tied together when
# it was made.
_NOTES = (
    "_output_shapes",
    "output_shapes",
    "_class",
    "_has_manual_control_dependencies",
    "_user_specified_name",
    "debug_name",
)


def compact_saved_model(folder: Path) -> None:
    """Writes `saved_model.pb` anew: equal operations once, short names, no notes that nobody reads.

    TensorFlow writes the full path of the layer into the name of every operation, and that name again wherever its
    result is used; the shape of each result, which whoever loads the graph infers anew; and the size of a tensor
    wherever a layer asks for it. What the signatures are called, and the variables, stays. Of what goes,
    names are the most.

    Args:
        folder: What `tf.saved_model.save` wrote without custom gradients, which find operations by their names.
    """
    path, saved = folder / "saved_model.pb", saved_model_pb2.SavedModel()
    saved.ParseFromString(path.read_bytes())
    for meta_graph in saved.meta_graphs:
        called_from_python = set(meta_graph.object_graph_def.concrete_functions)
        _compact_graph(meta_graph)
        for function in meta_graph.graph_def.library.function:
            renamed = _shorten_arguments(function, function.signature.name in called_from_python)
            _compact_nodes(function, renamed)
            _shorten_results(function)
        while _merge_functions(meta_graph.graph_def, called_from_python):
            pass
    path.write_bytes(saved.SerializeToString(deterministic=True))


def _compact_graph(meta_graph):
    """Drops the operations outside of functions that no signature, saver or start-up needs; names the others anew."""
    graph, saver = meta_graph.graph_def, meta_graph.saver_def
    tensors = [
        info.name
        for signature in meta_graph.signature_def.values()
        for info in (*signature.inputs.values(), *signature.outputs.values())
    ]
    tensors += [saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name]
    named = {tensor.partition(":")[0] for tensor in tensors}
    nodes = {node.name: node for node in graph.node}
    needed = {node.name for node in _in_order([nodes[name] for name in nodes if name in named], nodes)}
    kept = [type(node).FromString(node.SerializeToString()) for node in graph.node if node.name in needed]
    renamed = {node.name: node.name if node.name in named else _short(number) for number, node in enumerate(kept)}
    for node in kept:
        _rename(node, renamed)
    del graph.node[:]
    graph.node.extend(kept)


def _shorten_arguments(function, called_from_python):
    """Gives the arguments of a `FunctionDef` short names; returns these by the old ones.

    Python finds the arguments that a caller gives by their names, and the weights by their order.
    """
    renamed = {}
    for number, argument in enumerate(function.signature.input_arg):
        argument.ClearField("experimental_full_type")
        if called_from_python and argument.type != types_pb2.DT_RESOURCE:
            continue
        renamed[argument.name] = argument.name = _short(number, string.ascii_lowercase)
        argument.ClearField("handle_data")
        if number in function.arg_attr:
            for note in _NOTES:
                function.arg_attr[number].attr.pop(note, None)
            if not function.arg_attr[number].attr:
                del function.arg_attr[number]
    if not called_from_python:
        function.attr.pop("_input_shapes", None)
    return renamed


def _compact_nodes(function, renamed):
    """Compacts the operations of a `FunctionDef`; `renamed` has the new names of its arguments."""
    names: dict[bytes, str] = {}
    kept: list = []
    nodes = {node.name: node for node in function.node_def}
    for node in _in_order(nodes.values(), nodes):
        if _passes_on(node, nodes):
            renamed[f"{node.name}:output:0"] = _renamed(node.input[0], renamed)
            renamed[node.name] = renamed[f"{node.name}:output:0"].partition(":")[0]
            continue
        original, node = node.name, type(node).FromString(node.SerializeToString())
        renamed[original] = ""
        _rename(node, renamed)
        key = node.SerializeToString(deterministic=True)
        if key in names:
            renamed[original] = names[key]
            continue
        node.name = renamed[original] = _short(len(kept))
        kept.append(node)
        if _is_pure(node):
            names[key] = node.name
    del function.node_def[:]
    function.node_def.extend(kept)
    for results in (function.ret, function.control_ret):
        for key, reference in list(results.items()):
            results[key] = _renamed(reference, renamed)


def _shorten_results(function):
    """Gives the results of a `FunctionDef`, which callers know by their order, short names."""
    results, controls = dict(function.ret), sorted(set(function.control_ret.values()))
    function.ret.clear()
    function.control_ret.clear()
    for number, argument in enumerate(function.signature.output_arg):
        reference, argument.name = results[argument.name], _short(number, string.ascii_lowercase)
        argument.ClearField("handle_data")
        argument.ClearField("experimental_full_type")
        function.ret[argument.name] = reference
    del function.signature.control_output[:]
    for number, node in enumerate(controls):
        function.control_ret[_short(number)] = node
        function.signature.control_output.append(_short(number))


def _merge_functions(graph, called_from_python):
    """Drops functions that are like another, and calls that one; says whether there were any.

    Those that called the two may be alike now.
    """
    names: dict[bytes, str] = {}
    renamed = {}
    for function in graph.library.function:
        name, function.signature.name = function.signature.name, ""
        kept = names.setdefault(function.SerializeToString(deterministic=True), name)
        function.signature.name = name
        if kept != name and name not in called_from_python:
            renamed[name] = kept
    functions = [function for function in graph.library.function if function.signature.name not in renamed]
    for node in (*graph.node, *(node for function in functions for node in function.node_def)):
        for value in node.attr.values():
            for called in (value.func,) if value.HasField("func") else value.list.func:
                called.name = renamed.get(called.name, called.name)
    del graph.library.function[:]
    graph.library.function.extend(functions)
    return bool(renamed)


def _in_order(nodes, by_name):
    """Operations and those that they need, these first."""
    ordered: dict[str, object] = {}
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting[-1]
        needs = [by_name.get(reference.removeprefix("^").partition(":")[0]) for reference in node.input]
        missing = [need for need in needs if need is not None and need.name not in ordered]
        if missing and node.name not in ordered:
            waiting.extend(missing)
        else:
            ordered.setdefault(node.name, node)
            waiting.pop()
    return list(ordered.values())


def _passes_on(node, nodes):
    """Whether an operation only gives another name to what another operation of the function made."""
    return node.op == "Identity" and len(node.input) == 1 and node.input[0].partition(":")[0] in nodes


def _is_pure(node):
    """Whether an operation gives the same for the same, whenever it runs."""
    definition = op_def_registry.get(node.op)
    return definition and not definition.is_stateful and not any(name.startswith("^") for name in node.input)


def _rename(node, renamed):
    inputs = [_renamed(reference, renamed) for reference in node.input]
    data = [reference for reference in inputs if not reference.startswith("^")]
    del node.input[:]
    node.input.extend([*data, *sorted({reference for reference in inputs if reference.startswith("^")})])
    node.name = renamed[node.name]
    node.ClearField("experimental_debug_info")
    node.ClearField("experimental_type")
    for note in _NOTES:
        node.attr.pop(note, None)


def _renamed(reference, renamed):
    """A reference to a result, `name:output:0`, to an argument, `name`, or to what comes first, `^name`."""
    if reference in renamed:
        return renamed[reference]
    control = "^" if reference.startswith("^") else ""
    name, colon, rest = reference.removeprefix("^").partition(":")
    return control + renamed.get(name, name) + colon + rest


def _short(number, first=string.digits):
    """The shortest names there are, by number. Those of operations begin with a digit, which no argument's does."""
    number, place = divmod(number, len(first))
    rest = ""
    while number:
        number, digit = divmod(number - 1, len(_DIGITS))
        rest = _DIGITS[digit] + rest
    return first[place] + rest
