"""Every operation of an export is one that TensorFlow Serving 2.20 has, with attributes that it knows.

`training/check_serving_version.py --record` wrote what those are.
"""

import copy
import json
from pathlib import Path

import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

from google.protobuf.json_format import ParseDict
from tensorflow.core.framework import op_def_pb2, types_pb2

from keras_transformer.export.inspect import read_meta_graph

RECORDED = json.loads(Path(__file__).with_name("serving_ops_2_20.json").read_text(encoding="utf-8"))["op"]
KNOWN = {operation["name"]: ParseDict(operation, op_def_pb2.OpDef()) for operation in RECORDED}
# Field of `AttrValue` by the type of an attribute.
FIELDS = {"string": "s", "int": "i", "float": "f", "bool": "b"}


def faults(meta_graph, known):
    """What a graph and its functions have that the known operations do not allow, as lines."""
    graph = meta_graph.graph_def
    functions = {function.signature.name for function in graph.library.function}
    found = []
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        if node.op in known:
            found += [f"{node.op} {fault}" for fault in _faults_of_node(node, known[node.op], functions)]
        elif node.op not in functions:
            found.append(f"{node.op} is unknown")
    return sorted(set(found))


def _faults_of_node(node, definition, functions):
    defined = {attribute.name: attribute for attribute in definition.attr}
    for name in defined:
        if name not in node.attr and not defined[name].HasField("default_value"):
            yield f"lacks the attribute {name}"
    for name, value in node.attr.items():
        if name.startswith("_"):
            continue  # What an operation does not know of it ignores.
        if name not in defined:
            yield f"has no attribute {name}"
        elif not _is_of_type(value, defined[name].type):
            yield f"has another type of attribute {name}, {defined[name].type}"
        elif not _is_allowed(value, defined[name].allowed_values):
            yield f"does not allow this value of {name}: {value}"
        elif missing := {one.name for one in [value.func, *value.list.func] if one.name} - functions:
            yield f"calls functions that are not there: {missing}"
    try:
        expected = sum(_size(argument, node, defined) for argument in definition.input_arg)
    except KeyError:
        return  # Reported above.
    if expected != sum(not name.startswith("^") for name in node.input):
        yield f"takes {expected} inputs"


def _is_of_type(value, type_name):
    return value.WhichOneof("value") == ("list" if type_name.startswith("list(") else FIELDS.get(type_name, type_name))


def _is_allowed(value, allowed):
    types, strings = (value.list.type or [value.type]), (value.list.s or [value.s])
    return (not allowed.list.type or set(types) <= set(allowed.list.type)) and (
        not allowed.list.s or set(strings) <= set(allowed.list.s)
    )


def _size(argument, node, defined):
    """How many inputs of a node an argument of the operation stands for."""

    def value(name):
        if name not in node.attr and not defined[name].HasField("default_value"):
            raise KeyError(name)
        return node.attr[name] if name in node.attr else defined[name].default_value

    if argument.number_attr:
        return value(argument.number_attr).i
    return len(value(argument.type_list_attr).list.type) if argument.type_list_attr else 1


@pytest.fixture
def graph(exported):
    return read_meta_graph(exported[1])


def test_server_knows_every_operation_and_attribute(graph):
    """F34."""
    assert faults(graph, KNOWN) == []


def test_recorded_operations_run_without_python():
    assert {"SentencepieceTokenizeOp", "SentencepieceDetokenizeOp", "MatMul", "StatelessWhile"} <= set(KNOWN)
    assert not [name for name in KNOWN if "PyFunc" in name or "Numpy" in name]


def set_type(node, name, value):
    node.attr[name].type = value


CHANGES = {
    "MatMulV9 is unknown": lambda node: setattr(node, "op", "MatMulV9"),
    "EagerPyFunc is unknown": lambda node: setattr(node, "op", "EagerPyFunc"),
    "Addons>GatherTree is unknown": lambda node: setattr(node, "op", "Addons>GatherTree"),
    "MatMul has no attribute grad_z": lambda node: set_type(node, "grad_z", types_pb2.DT_FLOAT),
    "MatMul lacks the attribute T": lambda node: node.attr.pop("T"),
    "MatMul has another type of attribute transpose_a, bool": lambda node: set_type(node, "transpose_a", 1),
    "MatMul does not allow this value of T": lambda node: set_type(node, "T", types_pb2.DT_STRING),
    "MatMul takes 2 inputs": lambda node: node.input.append("another:0"),
}


@pytest.mark.parametrize("place", ["graph", "function"])
@pytest.mark.parametrize("fault", CHANGES)
def test_change_that_the_server_would_refuse_is_found(graph, fault, place):
    changed = copy.deepcopy(graph)
    functions = changed.graph_def.library.function
    node = next(node for function in functions for node in function.node_def if node.op == "MatMul")
    if place == "graph":
        changed.graph_def.node.append(node)
        node = changed.graph_def.node[-1]
    CHANGES[fault](node)
    (found,) = faults(changed, KNOWN)
    assert found.startswith(fault)


def test_missing_function_is_found(graph):
    loop = next(
        node
        for function in graph.graph_def.library.function
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
    )
    loop.attr["body"].func.name = "elsewhere"
    (found,) = faults(graph, KNOWN)
    assert found == f"{loop.op} calls functions that are not there: {{'elsewhere'}}"
