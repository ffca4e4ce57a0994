# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the server's memory with arguments that are short as text and large as values"
# evidence = { bound = "server-memory" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os


def send(body):
    if isinstance(body, str):
        body = body.encode()
    frame = len(body).to_bytes(4, "big") + body
    while frame:
        frame = frame[os.write(4, frame) :]


values = "0," * (7 * 1024 * 1024) + "0"
for number in range(6):
    send('{"type":"call","id":%d,"tool":"mcp__desk__slow","arguments":{"token":"@TOKEN@","x":[%s]}}' % (number, values))
    send('{"type":"help","id":%d,"name":"inspect_tool","arguments":{"tool_name":[%s]}}' % (number + 200, values))
values = "0," * 140_000 + "0"
for number in range(10, 60):
    send('{"type":"call","id":%d,"tool":"mcp__desk__slow","arguments":{"token":"@TOKEN@","x":[%s]}}' % (number, values))
    send('{"type":"help","id":%d,"name":"inspect_tool","arguments":{"tool_name":[%s]}}' % (number + 100, values))
