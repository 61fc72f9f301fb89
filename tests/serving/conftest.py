"""What the tests of serving share: a small translator and a model that echoes, exported once, and their servers."""

import socket

import pytest


@pytest.fixture(scope="session")
def tokenizer():
    pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
    from keras_transformer.data.phrasebook import phrasebook
    from keras_transformer.text import Tokenizer

    texts = [text for pair in phrasebook("zh", "train")[:300] for text in pair]
    return Tokenizer.train(texts, vocabulary_size=700, model_type="bpe")


@pytest.fixture(scope="session")
def small_model(tokenizer, tmp_path_factory):
    """A `Translator` that says nothing sensible, but something else for each source; and its folder, of version 1."""
    from keras_transformer.decoding import Translator
    from keras_transformer.export import ServingLimits
    from keras_transformer.models import TransformerConfig, transformer
    from tests.decoding.models import randomize

    sizes = {"encoder_layers": 1, "decoder_layers": 1}
    # With these the outputs vary most.
    varied = {"positions": "learned", "max_length": 128, "tie_embeddings": "none"}
    model = transformer(TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size, **sizes, **varied))
    randomize(model, seed=4)
    translator = Translator(model, tokenizer)
    limits = ServingLimits(max_beam_size=8, max_source_length=128, max_length=128)
    return translator, translator.export(tmp_path_factory.mktemp("saved_models") / "small", limits=limits).parent


@pytest.fixture(scope="session")
def served(small_model):
    """The translator, and a server of it that has run the warm-up requests."""
    from tests.serving.server import Server

    translator, folder = small_model
    server = Server(folder)
    yield translator, server
    server.stop()


@pytest.fixture(scope="session")
def stub(served):
    """The generated gRPC client of that server."""
    import grpc
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    with grpc.insecure_channel(served[1].address["gRPC"]) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def batching(small_model):
    """The translator, and a server of it that joins requests: up to 8 rows that arrive within 5 ms."""
    from tests.serving.server import Server

    translator, folder = small_model
    server = Server(folder, batching=(8, 0.005), warmup=False)
    yield translator, server
    server.stop()


@pytest.fixture
def joining_two(batching):
    """That server, which joins the next two requests of a row, however long the second takes to arrive."""
    server = batching[1]
    batcher = server.version.batcher
    before = batcher.max_batch_size, batcher.timeout
    batcher.max_batch_size, batcher.timeout = 2, 30
    batcher.requests_of_batches.clear()
    yield server
    batcher.max_batch_size, batcher.timeout = before


@pytest.fixture(scope="session")
def echo_folder(tmp_path_factory):
    from tests.serving.echo import export_echo

    return export_echo(tmp_path_factory.mktemp("saved_models") / "echo")


@pytest.fixture
def start():
    """Starts servers, and stops those that still run at the end of the test."""
    from tests.serving.server import Server

    servers = []

    def start(*arguments, **options):
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def echo_server(echo_folder):
    from tests.serving.server import Server

    server = Server(echo_folder)
    yield server
    server.stop()


@pytest.fixture
def echo(echo_server):
    """A server of the model that echoes; what it counts is of one test."""
    echo_server.requests.clear()
    yield echo_server
    echo_server.before_run = lambda number: None


@pytest.fixture(params=["gRPC", "REST"])
def transport(request):
    return request.param


@pytest.fixture
def free_ports():
    """Two ports at which nothing listens, for gRPC and REST."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
