# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read and write markup"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import base64
import configparser
import email.message
import html.parser
import urllib.parse
import xml.etree.ElementTree as tree

assert tree.fromstring("<a><b>x</b></a>").findtext("b") == "x"
message = email.message.EmailMessage()
message["Subject"], message["To"] = "Grüße", "a@example.org"
message.set_content("ä")
assert b"Subject" in message.as_bytes()
assert urllib.parse.urlencode({"q": "a b"}) == "q=a+b" and base64.b64encode(b"x") == b"eA=="
parser = configparser.ConfigParser()
parser.read_string("[a]\nb=1")
assert parser.getint("a", "b") == 1

print("@FORBIDDEN@"[::-1])
