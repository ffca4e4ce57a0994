"""Run inside the sandbox before any program: what must work works, what must fail fails.

Its word counts only for what it says went wrong: the server checks the secret, the markers and the
listener itself.
"""
import errno
import json
import os
import sys

given = json.loads(sys.argv[1])
results, faults = {}, []


def attack(name):
    """Runs at once; the function returns normally if the attack got through."""

    def run(function):
        try:
            function()
            results[name] = None
        except OSError as error:
            results[name] = errno.errorcode.get(error.errno, str(error.errno))
        except BaseException as error:
            results[name] = type(error).__name__

    return run


def must(name):
    def run(function):
        try:
            function()
        except BaseException as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")

    return run


class Held(Exception):
    """The attack was carried out and found nothing."""


@must("writing into the scratch directory")
def _():
    path = os.path.join(os.getcwd(), "probe")
    with open(path, "w") as file:
        file.write("lands")
    with open(path) as file:
        assert file.read() == "lands"
    os.remove(path)
    assert os.listdir() == [], "it is not empty"
    assert os.environ["HOME"] == os.environ["TMPDIR"] == os.getcwd()


@must("/dev/null")
def _():
    with open("/dev/null", "r+b", buffering=0) as null:
        null.write(b"x")


@must("the standard library")
def _():
    import asyncio, collections, csv, datetime, decimal, hashlib, json, re, statistics  # noqa: E401

    missing = []
    for name in given["modules"]:
        try:
            __import__(name)
        except BaseException as error:
            missing.append(f"{name} ({error})")
    assert not missing, "cannot import " + ", ".join(missing[:5])


@must("an event loop with a thread")
def _():
    import asyncio

    async def main():
        return await asyncio.get_running_loop().run_in_executor(None, lambda: 7)

    assert asyncio.run(main()) == 7


@must("an empty environment")
def _():
    more = sorted(set(os.environ) - {"HOME", "TMPDIR", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"})
    assert not more, ", ".join(more)


@must("no inherited descriptors")
def _():
    for number in range(3, 256):
        try:
            found = os.fstat(number)
        except OSError:
            continue
        raise AssertionError(f"descriptor {number} is open: {found}")


@attack("read a file of the host")
def _():
    with open(given["secret"]) as file:
        file.read()


@attack("read it through a link")
def _():
    os.symlink(given["secret"], "link")
    try:
        with open("link") as file:
            file.read()
    finally:
        os.remove("link")


def answer(path):
    try:
        os.stat(path)
        return 0
    except OSError as error:
        return error.errno


@attack("ask whether a file exists")
def _():
    if answer(given["secret"]) != answer(given["secret"] + "-not") or answer(given["folder"]) == 0:
        return
    raise Held


@attack("list the root folder")
def _():
    more = set(os.listdir("/")) - set(given["roots"])
    if not more:
        raise Held


@attack("write outside the scratch directory")
def _():
    error = None
    for folder in (given["folder"], "/tmp", "/var/tmp", "/dev", "/", ".."):
        try:
            with open(os.path.join(folder, given["marker"]), "w"):
                return
        except OSError as caught:
            error = caught
    raise error


@attack("change the standard library")
def _():
    open(os.__file__, "a").close()


@attack("change a file's mode")
def _():
    os.chmod(given["secret"], 0o777)


@attack("read about processes")
def _():
    error = None
    for name in ("self/status", "1/environ", "mounts", f"{given['server']}/cmdline"):
        try:
            with open(f"/proc/{name}", "rb") as file:
                file.read()
            return
        except OSError as caught:
            error = caught
    raise error


@attack("connect over TCP")
def _():
    import socket

    socket.create_connection(("127.0.0.1", given["port"] or 9), timeout=1).close()


@attack("connect to a local socket")
def _():
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as local:
        local.connect(os.path.join(given["folder"], "socket"))


@attack("start a process")
def _():
    if os.fork() == 0:
        os._exit(0)


@attack("execute a program")
def _():
    program = given.get("program") or sys.executable
    os.execv(program, [program, "-c", ""])


@attack("signal the server")
def _():
    os.kill(given["server"], 0)


@attack("become root")
def _():
    os.setresuid(0, 0, 0)


@attack("raise a limit")
def _():
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1000, hard + 1000))


@attack("take memory that is not counted")
def _():
    import mmap

    mmap.mmap(-1, 1 << 20).close()


@attack("change the host name")
def _():
    import socket

    socket.sethostname("changed")


try:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):
    libc = None

if libc is not None:

    def call(function, *arguments):
        if function(*arguments) == -1:
            raise OSError(ctypes.get_errno(), "")

    @attack("mount a file system")
    def _():
        call(libc.mount, b"none", os.getcwd().encode(), b"tmpfs", 0, None)

    @attack("make a namespace")
    def _():
        call(libc.unshare, 0x10000000)

    @attack("trace a process")
    def _():
        call(libc.ptrace, 16, given["server"], None, None)  # PTRACE_ATTACH


if given.get("seatbelt"):

    @attack("ask a file system whether a file exists")
    def _():
        def ask(function, path):
            try:
                function(path)
                return 0
            except OSError as error:
                return error.errno

        for function in (os.statvfs, lambda path: os.pathconf(path, "PC_NAME_MAX")):
            if ask(function, given["secret"]) != ask(function, given["secret"] + "-not"):
                return
        raise Held

    @attack("give a library's file a second name")
    def _():
        os.link(os.__file__, "link")

    @attack("map code out of the scratch directory")
    def _():
        import mmap

        with open("code", "w+b") as file:
            file.write(bytes(1 << 16))
            file.flush()
            try:
                mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
            finally:
                os.remove("code")

    @attack("read the host's name")
    def _():
        if os.uname().nodename in ("localhost", "") or os.uname().nodename != given["host"]:
            raise Held

    if libc is not None:

        @attack("reach a service of the system")
        def _():
            port = ctypes.c_uint()
            own = ctypes.c_uint.in_dll(libc, "bootstrap_port")
            name = b"com.apple.system.notification_center"
            if libc.bootstrap_look_up(own, name, ctypes.byref(port)) != 0:
                raise Held


if given["private"]:

    @attack("learn the host's name")
    def _():
        if os.uname().nodename == "sandbox":
            raise Held

    @attack("learn the host's user")
    def _():
        if (os.getuid(), os.getgid(), os.getpid(), os.getcwd()) == (65534, 65534, 1, "/scratch"):
            raise Held


print(json.dumps({"results": results, "faults": faults}))
