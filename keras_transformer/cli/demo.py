"""`demo`: a page in the browser."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.app import app


@app.command()
def demo(
    model: Annotated[
        Path, typer.Argument(help="Folder of a run, a preset, an exported model, or one of its versions.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 7860,
    open_browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = False,
):
    """Open a page to try a model: translations, confidence, attention. Ctrl-C ends it.

    Example: keras-transformer demo saved_models/demo
    """
    # Before Gradio is imported: it would report to its makers, and ask them for news.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    from keras_transformer.demo import engine_of, make_page

    try:
        socket.create_server((host, port), family=socket.getaddrinfo(host, port)[0][0]).close()
    except OSError as error:
        raise ValueError(f"Could not listen at {host}:{port} (--host, --port). Received: {error}") from error
    blocks, options = make_page(engine_of(model))
    blocks.launch(server_name=host, server_port=port, inbrowser=open_browser, share=False, **options)
