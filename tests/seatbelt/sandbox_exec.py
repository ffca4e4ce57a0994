"""Stands for sandbox-exec: checks what it is told, as the real one would, and becomes the command.

It confines nothing. `BEHAVIOUR` stands in front of this text; the self-test, which would notice that
nothing is confined, is answered in the wall's place.
"""
import json
import os
import re
import signal
import sys


def fail(words, status):
    print("sandbox-exec:", words, file=sys.stderr)
    sys.exit(status)


profile, parameters, rest = None, {}, sys.argv[1:]
while rest and rest[0].startswith("-"):
    option, value, *rest = rest
    if option == "-p":
        profile = value
    elif option == "-D":
        name, equals, value = value.partition("=")
        if not equals or name in parameters:
            fail(f"-D {name}: given twice, or without a value", 64)
        parameters[name] = value
    else:
        fail(f"unknown option {option}", 64)
if profile is None or not rest:
    fail("no profile, or no command", 64)

used = set(re.findall(r'\(param "([A-Z0-9_]+)"\)', profile))
if used != set(parameters):
    fail(f"not given: {sorted(used - set(parameters))}; not used: {sorted(set(parameters) - used)}", 65)
for name, value in parameters.items():
    if not value.startswith("/") or ("ANCESTOR" not in name and value != os.path.realpath(value)):
        fail(f"{name} is no real path: {value}", 65)
if rest[0] != parameters["EXECUTABLE"]:
    fail(f"execvp() of '{rest[0]}' failed: Operation not permitted", 71)
if os.getcwd() != parameters["SCRATCH"]:
    fail("it does not start in the scratch directory", 71)

if BEHAVIOUR == "nested":
    fail("sandbox_apply: Operation not permitted", 71)
if BEHAVIOUR == "unknown rule":
    fail("<input string>:19:9: unbound variable: file-map-executable", 65)
if BEHAVIOUR == "aborts":
    os.kill(os.getpid(), signal.SIGABRT)

script = rest[rest.index("-c") + 1]
if script.startswith('"""Run inside the sandbox before any program') and BEHAVIOUR != "open":
    results = {name: "EPERM" for name in re.findall(r'@attack\("(.*?)"\)', script)}
    if BEHAVIOUR == "hole":
        results["start a process"] = None
    if BEHAVIOUR == "touches":
        with open(json.loads(rest[-1])["secret"], "a") as file:
            file.write("changed")
    faults = ["the standard library: cannot import _ssl"] if BEHAVIOUR == "breaks" else []
    print(json.dumps({"results": results, "faults": faults}))
    sys.exit()
os.execv(rest[0], rest)
