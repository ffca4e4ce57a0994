# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call a remote procedure"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket
import xmlrpc.client

socket.setdefaulttimeout(0.5)
xmlrpc.client.ServerProxy("http://127.0.0.1:@TCP@/").anything()
