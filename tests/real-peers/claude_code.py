#!/usr/bin/env python3
"""Drives the newest Claude Code through ptc-mcp, with a scripted model on loopback in place of the
real one, and looks at what that model is shown.

    tests/real-peers/claude_code.py [path of ptc-mcp]

CLAUDE names a `claude` command; without it the package is installed by npm below the target folder,
once. CARGO_TARGET_DIR is respected. No key, no login and no network beyond npm is used. Exit status:
0 when everything holds, 1 when something does not, 77 when there is no Claude Code to be had.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
OURS = ["mcp__ptc__execute_program", "mcp__ptc__inspect_tool", "mcp__ptc__list_callable_tools"]
PATIENCE = 300

SUCCEEDS = """
engineers = await mcp__hr__list_engineers()
for _ in range(9):
    engineers = await mcp__hr__list_engineers()
import asyncio
found = await asyncio.gather(*(
    mcp__hr__get_expenses(employee_id=e["id"], from_="2025-01-01", to="2025-03-31") for e in engineers))
print(len(engineers), sum(len(one["expenses"]) for one in found))
"""

FAILS = """
print("begun")
for number in range(1, 4):
    await mcp__hr__get_expenses(employee_id=f"E{number:03}", from_="2025-01-01", to="2025-03-31")
raise ValueError("the sums differ")
"""

REFUSED = "await mcp__hr__get_expense(employee_id='E001')\n"


def install():
    """The `claude` command and the folders that must be on its PATH."""
    given = os.environ.get("CLAUDE")
    if given:
        return given, [str(pathlib.Path(given).parent)]
    if not shutil.which("npm"):
        return None, []
    folder = TARGET / "real-peers" / "node"
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "node_modules" / ".bin" / "claude"
    if not command.exists():
        # Node comes along: current releases want a newer one than many systems have.
        packages = ["node@22", "@anthropic-ai/claude-code@latest"]
        done = subprocess.run(
            ["npm", "install", "--prefix", str(folder), "--no-fund", "--no-audit", *packages], stdout=sys.stderr
        )
        if done.returncode != 0 or not command.exists():
            return None, []
    return str(command), [str(command.parent)]


class Model:
    """Answers each conversation by one tool call, then by a last word; remembers every request."""

    def __init__(self, code):
        self.code = code
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.reply(b"", "application/json")

            do_GET = do_HEAD

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if not self.path.split("?")[0].endswith("/v1/messages"):
                    self.reply(b'{"input_tokens":1}', "application/json")
                    return
                model.requests.append(body)
                block = model.answer(body)
                if body.get("stream"):
                    self.reply(stream(block), "text/event-stream")
                else:
                    self.reply(json.dumps(message([block])).encode(), "application/json")

            def reply(self, data, kind):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, body):
        names = [tool.get("name") for tool in body.get("tools", [])]
        if OURS[0] in names and not results_in(body):
            return {"type": "tool_use", "id": "toolu_1", "name": OURS[0], "input": {"code": self.code}}
        return {"type": "text", "text": "done"}


def message(content):
    stop = "tool_use" if content and content[0]["type"] == "tool_use" else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": stop if content else None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def stream(block):
    if block["type"] == "tool_use":
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        stop = "tool_use"
    else:
        start = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
        stop = "end_turn"
    events = [
        {"type": "message_start", "message": message([])},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def results_in(body):
    """What the model is shown of its calls."""
    found = []
    for turn in body.get("messages", []):
        content = turn.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                found.append(block)
    return found


def text_of(result):
    content = result.get("content")
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def converse(claude, path, binary, code):
    """One conversation; the requests that the model got."""
    model = Model(code)
    with tempfile.TemporaryDirectory(prefix="claude-peer-") as folder:
        folder = pathlib.Path(folder)
        config = {
            "servers": [{"name": "hr", "command": sys.executable, "args": [str(ROOT / "examples/finance_server.py"), "hr"]}],
            "execution": {"sandbox": "none"},
        }
        (folder / "config.yaml").write_text(json.dumps(config))
        server = {"command": binary, "args": ["--config", str(folder / "config.yaml")]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"ptc": server}}))
        (folder / "project").mkdir()
        env = {
            "PATH": os.pathsep.join([*path, os.environ.get("PATH", "")]),
            "HOME": str(folder),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "MCP_CONNECTION_NONBLOCKING": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        command = [claude, "-p", "go", "--mcp-config", str(folder / "mcp.json"), "--strict-mcp-config"]
        command += ["--allowedTools", ",".join(OURS), "--output-format", "text"]
        done = subprocess.run(
            command, env=env, cwd=folder / "project", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    model.server.shutdown()
    asked = [body for body in model.requests if OURS[0] in [tool.get("name") for tool in body.get("tools", [])]]
    if not asked or not results_in(asked[-1]):
        names = [[tool.get("name") for tool in body.get("tools", [])] for body in model.requests]
        raise AssertionError(f"no tool was called; offered: {names}\n{done.stdout}\n{done.stderr}")
    return asked


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PTC_MCP", str(TARGET / "debug" / "ptc-mcp"))
    claude, path = install()
    if claude is None:
        print("left out: Claude Code cannot be had here (npm)", file=sys.stderr)
        return 77
    version = subprocess.run([claude, "--version"], env={"PATH": os.pathsep.join([*path, os.environ["PATH"]])}, capture_output=True, text=True)
    print(f"Claude Code {version.stdout.strip()}")

    asked = converse(claude, path, binary, SUCCEEDS)
    # contract: S2 S7
    offered = {tool["name"]: tool for tool in asked[0]["tools"]}
    for name in OURS:
        assert name in offered, f"{name} is not offered in the first request: {sorted(offered)}"
        assert not offered[name].get("defer_loading"), f"{name} is behind the tool search"
        described = offered[name]["description"]
        assert "…" not in described and "truncated" not in described, f"{name}: the description was cut"
    shown = text_of(results_in(asked[-1])[0])
    first, second, trace = shown.split("\n")[:3]
    assert first == "[Script executed successfully]", shown
    assert second.split()[0] == "20", shown
    assert trace.startswith("[tool calls: 30; "), shown
    assert "duration_ms" not in shown and '"tool"' not in shown, "the records are in the context"
    assert len(shown.encode()) <= len(second.encode()) + 200, f"{len(shown.encode())} bytes"
    print(f"  after 30 calls the model sees {len(shown.encode())} bytes for {len(second.encode())} of output")

    # contract: A4 M5 S5
    result = results_in(converse(claude, path, binary, FAILS)[-1])[0]
    shown = text_of(result)
    assert result.get("is_error"), result
    for said in ("ValueError: the sums differ", "Tool calls before the error: 3 answered", "begun", "[tool calls: 3; "):
        assert said in shown, f"{said!r} is missing:\n{shown}"
    assert "duration_ms" not in shown
    print(f"  after a failure it sees the cause and the ledger, {len(shown.encode())} bytes")

    # contract: M3 M4
    shown = text_of(results_in(converse(claude, path, binary, REFUSED)[-1])[0])
    for said in ("CheckError", "nothing has run", "closest: mcp__hr__get_expenses"):
        assert said in shown, f"{said!r} is missing:\n{shown}"
    print("  a wrong name is answered by the right one before anything runs")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        print(f"claude_code: {error}", file=sys.stderr)
        sys.exit(1)
