# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "hash and draw lots"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import hashlib
import hmac
import os
import random
import secrets
import uuid

assert hashlib.sha256(b"").hexdigest().startswith("e3b0c44298fc")
assert hmac.compare_digest(hmac.new(b"k", b"m", "sha256").digest(), hmac.digest(b"k", b"m", "sha256"))
assert len(secrets.token_bytes(16)) == len(os.urandom(16)) == 16
assert uuid.uuid4().version == 4 and 0 <= random.random() < 1

print("@FORBIDDEN@"[::-1])
