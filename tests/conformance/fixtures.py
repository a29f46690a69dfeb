"""The tools, prompts and resources that the suite's scenarios expect on a server under test.

Those here answer at once; those that need input of the client are in client_requests.py.
"""

import asyncio
import base64
import json
import warnings
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
# The suite wants to see notifications arrive one by one.
STEP_SECONDS = 0.05
fixtures: MCPServer[Any] = MCPServer("fixtures", subscriptions=False)
tool = fixtures.tool(description="Wanted by the conformance suite.")
prompt = fixtures.prompt(description="Wanted by the conformance suite.")


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def resource(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, text=words, mime_type=mime_type)
    return EmbeddedResource(type="resource", resource=contents)


@tool
def test_simple_text() -> list[ContentBlock]:
    return [text("This is a simple text response for testing.")]


@tool
def test_image_content() -> list[ContentBlock]:
    return [ImageContent(type="image", data=PIXEL, mime_type="image/png")]


@tool
def test_audio_content() -> list[ContentBlock]:
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


@tool
def test_embedded_resource() -> list[ContentBlock]:
    return [resource("test://embedded-resource", "This is an embedded resource content.")]


@tool
def test_multiple_content_types() -> list[ContentBlock]:
    return [
        text("Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        resource(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ]


@tool
async def test_tool_with_logging(ctx: Context[Any, Any]) -> list[ContentBlock]:
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(ctx, step)
        await asyncio.sleep(STEP_SECONDS)
    return [text("Tool with logging executed successfully")]


@tool
async def test_logging_tool(ctx: Context[Any, Any]) -> list[ContentBlock]:
    await _log(ctx, "Only for those who asked for logs")
    return [text("Logged")]


async def _log(ctx: Context[Any, Any], words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.log("info", words)


@tool
async def test_tool_with_progress(ctx: Context[Any, Any]) -> list[ContentBlock]:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_SECONDS)
    return [text("Done")]


@tool
def test_custom_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> list[ContentBlock]:
    return [text(region)]


@tool
def test_error_handling() -> list[ContentBlock]:
    raise RuntimeError("This tool intentionally returns an error for testing")


@fixtures.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@fixtures.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


@fixtures.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "Watched resource content."


@fixtures.resource("test://template/{id}/data", mime_type="application/json")
def from_template(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@prompt
def test_simple_prompt() -> list[Message]:
    return [_said(text("This is a simple prompt for testing."))]


@prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[Message]:
    return [_said(text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]


@prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
    return [
        _said(resource(resourceUri, "Embedded resource content for testing.")),
        _said(text("Please process the embedded resource above.")),
    ]


@prompt
def test_prompt_with_image() -> list[Message]:
    image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [_said(image), _said(text("Please analyze the image above."))]


def _said(content: ContentBlock) -> Message:
    return UserMessage(content)
