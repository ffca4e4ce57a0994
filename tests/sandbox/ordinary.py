import asyncio
import concurrent.futures
import datetime
import decimal
import fcntl
import mmap
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import ssl
import tempfile
import threading
import time
import zipfile
import zoneinfo

faults = []


def works(function):
    try:
        assert function() is not False
    except BaseException as error:
        faults.append(f"{function.__name__}: {type(error).__name__}: {error}")


@works
def threads():
    done = []
    started = [threading.Thread(target=done.append, args=(1,)) for _ in range(30)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return len(done) == 30


@works
def executors():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sum(pool.map(len, ["a", "bc"])) == 3


@works
def databases():
    with sqlite3.connect("x.db") as base:
        assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
        base.execute("create table t(a)")
        base.executemany("insert into t values (?)", [(n,) for n in range(100)])
        return base.execute("select sum(a) from t").fetchone() == (4950,)


@works
def time_zones():
    if not zoneinfo.available_timezones():
        return True
    summer = datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    return summer.utcoffset() == datetime.timedelta(hours=2)


@works
def archives():
    with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", "b" * 1000)
    shutil.make_archive("b", "gztar", ".")
    return zipfile.ZipFile("a.zip").read("a") == b"b" * 1000


@works
def temporary_files():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "ünï").write_text("é")
        shutil.copy2(pathlib.Path(folder, "ünï"), "copy")
        shutil.copytree(folder, "tree")
        shutil.move("tree", "moved")
        if hasattr(pathlib.Path, "copy"):
            pathlib.Path("copy").copy("copied")
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    return open("copy").read() == "é" and str(pathlib.Path.home()) == os.getcwd()


@works
def file_system():
    os.link("copy", "hard")
    os.symlink("copy", "soft")
    os.chmod("copy", 0o600)
    os.utime("copy", (1, 1))
    os.rename("hard", "renamed")
    with open("copy", "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with mmap.mmap(file.fileno(), 0) as mapped:
            mapped[0:1] = b"\xc3"
    return os.readlink("soft") == "copy"


@works
def sockets_to_itself():
    one, other = socket.socketpair()
    one.sendall(b"x")
    return other.recv(1) == b"x"


@works
def timers():
    rang = []
    signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while not rang:
        time.sleep(0.005)


@works
def contexts():
    ssl.create_default_context()
    return str(decimal.Decimal(1) / 3).startswith("0.333")


@works
def no_packages():
    try:
        import pip  # noqa: F401
    except ImportError:
        return True
    return False


async def main():
    results = await asyncio.gather(*(asyncio.sleep(0.001, n) for n in range(50)))
    return sum(results), await asyncio.to_thread(threading.active_count)


if (await main())[0] != 1225:
    faults.append("asyncio")
print("\n".join(faults) or "all works")
