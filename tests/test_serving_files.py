"""The files for TensorFlow Serving: they parse as its messages, and agree with each other and with their README."""

import json
import re
from pathlib import Path

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "saved_models"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
# Messages that tensorflow-serving-api lacks, as tensorflow/serving has them: `BatchingParameters` in
# tensorflow_serving/servables/tensorflow/session_bundle_config.proto, the others in
# tensorflow_serving/config/monitoring_config.proto.
PROTO = """
name: "serving_files.proto" package: "tensorflow.serving" syntax: "proto3" dependency: "google/protobuf/wrappers.proto"
message_type {
  name: "BatchingParameters"
  field { name: "max_batch_size" number: 1 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "batch_timeout_micros" number: 2 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "max_enqueued_batches" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "num_batch_threads" number: 4 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "thread_pool_name" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.StringValue" }
  field { name: "allowed_batch_sizes" number: 6 type: TYPE_INT64 label: LABEL_REPEATED }
  field { name: "pad_variable_length_inputs" number: 7 type: TYPE_BOOL }
  field { name: "enable_large_batch_splitting" number: 8 type: TYPE_MESSAGE type_name: ".google.protobuf.BoolValue" }
  field { name: "max_execution_batch_size" number: 9 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
}
message_type {
  name: "PrometheusConfig"
  field { name: "enable" number: 1 type: TYPE_BOOL }
  field { name: "path" number: 2 type: TYPE_STRING }
}
message_type {
  name: "MonitoringConfig"
  field { name: "prometheus_config" number: 1 type: TYPE_MESSAGE type_name: ".tensorflow.serving.PrometheusConfig" }
}
"""


def message(name):
    """An empty message of `PROTO`."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    file = text_format.Parse(PROTO, descriptor_pb2.FileDescriptorProto())
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tensorflow.serving.{name}"))()


def parsed(file, empty):
    return text_format.Parse((FOLDER / file).read_text(encoding="utf-8"), empty)


def models(text):
    """The models of a `ModelServerConfig`."""
    reason = "the message is in tensorflow-serving-api"
    pb2 = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2", reason=reason)
    return text_format.Parse(text, pb2.ModelServerConfig()).model_config_list.config


def fenced(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def manifests():
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
    return {document["kind"]: document["spec"] for document in documents}


def container():
    (one,) = manifests()["Deployment"]["template"]["spec"]["containers"]
    return one


def flags(text):
    return dict(re.findall(r"--([a-z_]+)(?:=(\S+))?", text))


def kubernetes_flags():
    return flags(" ".join(container()["args"]))


def readme_flags():
    """Those of the server in the command that uses the files here."""
    (command,) = (block for block in fenced("sh") if "--model_config_file" in block)
    return flags(command.split("tensorflow/serving:")[1])


def test_models_are_where_the_commands_mount_them():
    (model,) = models((FOLDER / "models.config").read_text(encoding="utf-8"))
    assert (model.name, model.base_path, model.model_platform) == ("demo", "/models/demo", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 1
    for mount in (f"saved_models/{model.name}:{model.base_path}:ro", "saved_models:/models:ro"):
        assert mount in README
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in container()["volumeMounts"]


def test_canary_of_the_readme_is_a_config_of_two_named_versions():
    (text,) = fenced("proto")
    (model,) = models(text)
    assert list(model.model_version_policy.specific.versions) == [1, 2]
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    assert f"/v1/models/{model.name}/labels/canary:predict" in README


def test_batches_hold_the_warmup_requests_and_pad_nothing():
    warmup = pytest.importorskip("keras_transformer.export.warmup", reason="needs TensorFlow")
    batching = parsed("batching.config", message("BatchingParameters"))
    assert max(warmup._BATCH_SIZES) <= batching.max_batch_size.value
    assert f"A request has {batching.max_batch_size.value} rows at most" in README
    assert f"within {batching.batch_timeout_micros.value // 1000} ms" in README
    assert not batching.allowed_batch_sizes and not batching.pad_variable_length_inputs
    assert not batching.enable_large_batch_splitting.value
    assert f"holds {2 * len(warmup.LENGTHS) * len(warmup._BATCH_SIZES)} requests" in README
    for given in (kubernetes_flags(), readme_flags()):
        assert int(given["tensorflow_inter_op_parallelism"]) == batching.num_batch_threads.value
        assert given["tensorflow_intra_op_parallelism"] == "1"
    assert int(container()["resources"]["requests"]["cpu"]) == batching.num_batch_threads.value


def test_metrics_have_one_address():
    prometheus = parsed("monitoring.config", message("MonitoringConfig")).prometheus_config
    assert prometheus.enable
    assert f"http://127.0.0.1:8501{prometheus.path}" in README
    annotations = manifests()["Deployment"]["template"]["metadata"]["annotations"]
    assert (annotations["prometheus.io/port"], annotations["prometheus.io/path"]) == ("8501", prometheus.path)


def test_kubernetes_serves_what_the_readme_says():
    service, deployment = manifests()["Service"], manifests()["Deployment"]
    assert set(manifests()) == {"Service", "Deployment"}
    assert (service["type"], deployment["replicas"]) == ("ClusterIP", 2)
    assert service["selector"] == deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {port["name"]: port["port"] for port in service["ports"]} == {"grpc": 8500, "rest": 8501}
    given = kubernetes_flags()
    assert (given.pop("port"), given.pop("rest_api_port")) == ("8500", "8501")
    assert {name: value.replace("/config/", "/models/") for name, value in given.items()} == readme_flags()
    assert container()["image"] in README
    probe = container()["readinessProbe"]["httpGet"]
    assert (probe["port"], f"`{probe['path']}`" in README) == ("rest", True)


def test_kubernetes_mounts_the_files_that_its_comment_names():
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    files = {value for name, value in kubernetes_flags().items() if name.endswith("_file")}
    assert files == {f"/config/{Path(name).name}" for name in re.findall(r"--from-file=(\S+)", text)}
    volumes = {volume["name"]: volume for volume in manifests()["Deployment"]["template"]["spec"]["volumes"]}
    assert f"create configmap {volumes['config']['configMap']['name']} " in text
    assert set(volumes) == {mount["name"] for mount in container()["volumeMounts"]}


def test_files_of_the_readme_are_there_and_its_ports_are_for_this_machine():
    links = set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))
    assert all((FOLDER / link).is_file() for link in links)
    kept = re.findall("^!(.+)$", (FOLDER / ".gitignore").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(kept) == links | {".gitignore", "README.md"}
    published = re.findall(r"-p (\S+)", README)
    assert set(published) == {"127.0.0.1:8500:8500", "127.0.0.1:8501:8501"}


def test_bodies_of_the_readme_are_requests_of_the_contract():
    options = {"beam_size", "n_best", "length_penalty", "max_length", "target_prefix"}
    inputs = {"translate": {"text", *options}, "score": {"text", "target"}}
    bodies = [json.loads(body) for body in re.findall(r"-d '(.*?)'", README, flags=re.DOTALL)]
    assert len(bodies) == 4
    for body in bodies:
        expected = inputs.get(body.get("signature_name"), {"text"})
        rows = body["instances"] if "instances" in body else [body["inputs"]]
        assert all(isinstance(row, str) or set(row) == expected for row in rows)
