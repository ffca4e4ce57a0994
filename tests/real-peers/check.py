"""Drives ptc-mcp between real servers and real clients: one line a check, `ok` or `FAIL`.

The servers are called by programs, as a model would; the clients only have to find the three tools,
run a program and see its result.
"""

import argparse
import asyncio
import contextlib
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import fastmcp
import mcp

TOOLS = ["execute_program", "inspect_tool", "list_callable_tools"]
PROGRAM = "print(6 * 7)"
EXPECTED = "[Script executed successfully]\n42"
PATIENCE = 60

parser = argparse.ArgumentParser()
parser.add_argument("--ptc", type=Path, required=True)
parser.add_argument("--node", type=Path, required=True, help="folder of the npm commands")
parser.add_argument("--python", type=Path, required=True, help="folder of the Python commands")
parser.add_argument("only", nargs="?", default="", help="a word that a check's name must hold")
options = parser.parse_args()

checks = []


def check(function):
    checks.append(function)
    return function


def same(found, wanted):
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


class Place:
    """A folder with a configuration, and an environment in which nothing of this machine's shows."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.config = self.folder / "config.yaml"
        self.environment = {
            "PATH": f"{options.node}:{options.python}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PTC_MCP_CONFIG": str(self.config),
            "PTC_MCP_LOG": "warn",
        }
        self.write_config([])

    def write_config(self, servers, **execution):
        # JSON is YAML.
        self.config.write_text(json.dumps({"servers": servers, "execution": {"sandbox": "none", **execution}}))

    def run(self, *command, stdin=""):
        done = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def program(self, server, code):
        """What a program emits that may call one server, through the command line."""
        self.write_config([server])
        result = json.loads(self.run(options.ptc, "run", "--json", "-", stdin=textwrap.dedent(code)))
        assert result["ok"], result["error"]
        return result["result"]

    def stdio(self):
        return mcp.StdioServerParameters(command=str(options.ptc), env=self.environment, cwd=str(self.folder))


# Servers.

EVERYTHING = """
    tools = [name for name in await list_callable_tools()]
    echo = await mcp__everything__echo(message="hello")
    total = await mcp__everything__get_sum(a=2, b=40)
    weather = await mcp__everything__get_structured_content(location="Chicago")
    image = await mcp__everything__get_tiny_image()
    try:
        await mcp__everything__get_sum(a="two", b=40)
    except ToolError as e:
        refused = str(e)
    emit({"tools": len(tools), "echo": echo, "total": total, "weather": weather, "image": image, "refused": refused})
"""


EVERYTHING_OVER_STDIO = {"name": "everything", "command": "mcp-server-everything"}


def everything(place, server):
    result = place.program(server, EVERYTHING)
    assert result["tools"] >= 10, result
    same(result["echo"], "Echo: hello")
    assert "42" in result["total"], result
    same(sorted(result["weather"]), ["conditions", "humidity", "temperature"])
    assert any("non-text content omitted: image (image/png)" in note for note in result["image"]["_notes"]), result
    assert "mcp__everything__get_sum" in result["refused"], result


@contextlib.contextmanager
def listening(place, transport):
    """server-everything over HTTP, on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [options.node / "mcp-server-everything", transport],
        env={**place.environment, "PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert server.poll() is None and time.monotonic() < end, "it does not listen"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@check
def server_everything_over_stdio(place):
    everything(place, EVERYTHING_OVER_STDIO)


@check
def server_everything_over_streamable_http(place):
    with listening(place, "streamableHttp") as url:
        everything(place, {"name": "everything", "transport": "http", "url": f"{url}/mcp"})


@check
def server_everything_over_sse(place):
    with listening(place, "sse") as url:
        everything(place, {"name": "everything", "transport": "sse", "url": f"{url}/sse"})


@check
def server_filesystem(place):
    folder = place.folder / "shared"
    folder.mkdir()
    (folder / "here.txt").write_text("found\n")
    result = place.program(
        {"name": "files", "command": "mcp-server-filesystem", "args": [str(folder)]},
        f"""
        await mcp__files__write_file(path="{folder}/new.txt", content="Grüße")
        read = await mcp__files__read_text_file(path="{folder}/here.txt")
        listed = await mcp__files__list_directory(path="{folder}")
        try:
            await mcp__files__read_text_file(path="/etc/passwd")
        except ToolError as e:
            refused = str(e)
        emit([read, listed, refused])
        """,
    )
    same((folder / "new.txt").read_text(), "Grüße")
    read, listed, refused = json.dumps(result[0]), json.dumps(result[1]), result[2]
    assert "found" in read and "new.txt" in listed, result
    assert "ccess denied" in refused, refused


@check
def server_memory(place):
    graph = place.program(
        {
            "name": "memory",
            "command": "mcp-server-memory",
            "env": {"MEMORY_FILE_PATH": str(place.folder / "memory.jsonl")},
        },
        """
        entity = {"name": "ptc", "entityType": "server", "observations": ["runs programs"]}
        await mcp__memory__create_entities(entities=[entity])
        emit(await mcp__memory__read_graph())
        """,
    )
    same([entity["name"] for entity in graph["entities"]], ["ptc"])


@check
def server_time(place):
    result = place.program(
        {"name": "time", "command": "mcp-server-time"},
        """
        emit(await mcp__time__convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"))
        """,
    )
    assert "21:00" in json.dumps(result), result


@check
def server_git(place):
    repository = place.folder / "repository"
    place.run("git", "init", "--quiet", repository)
    (repository / "new.txt").write_text("new\n")
    result = place.program(
        {"name": "git", "command": "mcp-server-git"},
        f"""
        emit(await mcp__git__git_status(repo_path="{repository}"))
        """,
    )
    assert "new.txt" in json.dumps(result), result


@check
def server_of_fastmcp(place):
    result = place.program(
        {
            "name": "notebook",
            "command": "python",
            "args": [str(Path(__file__).with_name("notebook.py"))],
        },
        """
        try:
            await mcp__notebook__refuse()
        except ToolError as e:
            refused = str(e)
        emit([
            await mcp__notebook__numbers(),
            await mcp__notebook__note(title="two words"),
            await mcp__notebook__result(),
            refused,
        ])
        """,
    )
    numbers, note, genuine, refused = result
    same(numbers, [1, 2**70, 3])
    same(note, {"title": "two words", "words": 2})
    same(genuine, {"result": "genuine"})
    assert "not today" in refused, refused


# Clients.


async def sdk(place, mode):
    async with mcp.Client(place.stdio(), mode=mode, read_timeout_seconds=PATIENCE) as client:
        listed = await client.list_tools()
        same([tool.name for tool in listed.tools], TOOLS)
        # The SDK itself holds the structured result against the declared schema.
        result = await client.call_tool("execute_program", {"code": "print(6 * 7)\nemit({'n': 1})"})
        assert not result.is_error and result.content[0].text.startswith(EXPECTED), result
        same(result.structured_content["result"], {"n": 1})
        failed = await client.call_tool("execute_program", {"code": "1 / 0"})
        assert failed.is_error and "ZeroDivisionError" in failed.content[0].text, failed
        listed = await client.call_tool("list_callable_tools", {})
        same(listed.content[0].text, "[]")
        return client.protocol_version


@check
def client_python_sdk_of_the_2026_era(place):
    same(asyncio.run(sdk(place, "auto")), "2026-07-28")


@check
def client_python_sdk_with_a_handshake(place):
    same(asyncio.run(sdk(place, "legacy")), "2025-11-25")


@check
def client_python_sdk_cancels_and_sees_progress(place):
    place.write_config([EVERYTHING_OVER_STDIO], max_tool_calls=1_000_000)
    code = "while True:\n    await mcp__everything__echo(message='x')"

    async def session():
        seen = []

        async def progress(done, total, message):
            seen.append((done, message))

        async with mcp.Client(place.stdio()) as client:
            call = client.call_tool("execute_program", {"code": code}, progress_callback=progress)
            running = asyncio.ensure_future(call)
            while len(seen) < 2:
                await asyncio.sleep(0.01)
                assert not running.done(), running.result()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            assert seen[0][0] < seen[1][0], seen
            result = await client.call_tool("execute_program", {"code": PROGRAM})
            assert result.content[0].text.startswith(EXPECTED), result

    asyncio.run(session())


@check
def client_fastmcp(place):
    async def session():
        transport = fastmcp.client.StdioTransport(
            command=str(options.ptc), args=[], env=place.environment, cwd=str(place.folder)
        )
        async with fastmcp.Client(transport) as client:
            same([tool.name for tool in await client.list_tools()], TOOLS)
            result = await client.call_tool("execute_program", {"code": PROGRAM})
            assert result.content[0].text.startswith(EXPECTED), result

    asyncio.run(session())


@check
def client_inspector(place):
    inspector = [options.node / "mcp-inspector", "--cli", options.ptc, "-e", f"PTC_MCP_CONFIG={place.config}"]
    listed = json.loads(place.run(*inspector, "--method", "tools/list", "--strict"))
    same([tool["name"] for tool in listed["tools"]], TOOLS)
    called = json.loads(
        place.run(
            *inspector, "--method", "tools/call", "--tool-name", "execute_program", "--tool-arg", f"code={PROGRAM}"
        )
    )
    assert called["content"][0]["text"].startswith(EXPECTED), called
    same(called["structuredContent"]["output"], "42\n")


@check
def client_claude_code(place):
    place.run(options.node / "claude", "mcp", "add", "ptc", "-e", f"PTC_MCP_CONFIG={place.config}", "--", options.ptc)
    listed = place.run(options.node / "claude", "mcp", "list")
    assert re.search(r"^ptc: .*Connected", listed, re.M), listed


class FakeModel(http.server.BaseHTTPRequestHandler):
    """Answers Claude Code in the model's place: first with a call of our tool, then with a word.
    What it is sent is what a model would have seen."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "/v1/messages" not in self.path or "messages" not in request or "count_tokens" in self.path:
            return self.reply("application/json", json.dumps({"input_tokens": 1}))
        self.server.requests.append(request)
        tools = [tool["name"] for tool in request.get("tools", [])]
        called = any(
            block["type"] == "tool_result"
            for message in request["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        )
        if "mcp__ptc__execute_program" in tools and not called:
            block = {"type": "tool_use", "id": "toolu_1", "name": "mcp__ptc__execute_program", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"code": self.server.code})}
            reason = "tool_use"
        else:
            block, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn"
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self.reply("text/event-stream", stream)

    def do_GET(self):
        self.reply("application/json", "{}")

    do_HEAD = do_GET

    def reply(self, kind, text):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@check
def client_claude_code_shows_the_model_the_text(place):
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeModel)
    model.requests, model.code = [], PROGRAM
    threading.Thread(target=model.serve_forever, daemon=True).start()
    servers = {"mcpServers": {"ptc": {"command": str(options.ptc), "env": {"PTC_MCP_CONFIG": str(place.config)}}}}
    (place.folder / "mcp.json").write_text(json.dumps(servers))
    place.environment |= {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        "ANTHROPIC_API_KEY": "none",
        # Wait for the server before the first request.
        "MCP_CONNECTION_NONBLOCKING": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    try:
        said = place.run(
            *[options.node / "claude", "-p", "go", "--mcp-config", place.folder / "mcp.json", "--strict-mcp-config"],
            *["--allowedTools", "mcp__ptc", "--output-format", "text"],
        )
    finally:
        model.shutdown()
    same(said.strip(), "done")
    # The three tools are in sight without a search for them.
    names = {tool["name"] for request in model.requests for tool in request.get("tools", [])}
    assert {f"mcp__ptc__{tool}" for tool in TOOLS} <= names, names
    results = [
        block["content"]
        for request in model.requests
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert results, "the tool was not called"
    text = results[0] if isinstance(results[0], str) else results[0][0]["text"]
    assert text.startswith(EXPECTED), text
    assert "tool_calls" not in text, text


@check
def client_codex(place):
    home = place.folder / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[mcp_servers.ptc]\ncommand = "{options.ptc}"\n\n'
        f'[mcp_servers.ptc.env]\nPTC_MCP_CONFIG = "{place.config}"\n'
    )
    server = subprocess.Popen(
        [options.node / "codex", "app-server"],
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def request(method, params):
        request.id += 1
        server.stdin.write(json.dumps({"id": request.id, "method": method, "params": params}) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            message = json.loads(line)
            if message.get("id") == request.id and "method" not in message:
                assert "result" in message, message
                return message["result"]
        raise AssertionError(f"no answer to {method}")

    request.id = 0
    try:
        request("initialize", {"clientInfo": {"name": "check", "version": "1"}})
        server.stdin.write('{"method": "initialized"}\n')
        status = request("mcpServerStatus/list", {})
        (ptc,) = [entry for entry in status["data"] if entry["name"] == "ptc"]
        same(sorted(ptc["tools"]), sorted(TOOLS))
        thread = request("thread/start", {})["thread"]["id"]
        call = {"server": "ptc", "threadId": thread, "tool": "execute_program", "arguments": {"code": PROGRAM}}
        result = request("mcpServer/tool/call", call)
        assert result["content"][0]["text"].startswith(EXPECTED), result
        # Codex would show it to the model in place of the text.
        assert not result.get("structuredContent"), result
    finally:
        server.kill()
        server.wait()


def main():
    passed = failed = 0
    for function in checks:
        name = function.__name__.replace("_", " ")
        if options.only not in name:
            continue
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="ptc-peers-", ignore_cleanup_errors=True) as folder:
                function(Place(folder))
        except Exception as error:
            failed += 1
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
        else:
            passed += 1
            print(f"ok    {name}  {time.monotonic() - began:.1f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
