"""A FastMCP server whose results cover what FastMCP wraps and what it leaves alone."""

from dataclasses import dataclass

from fastmcp import FastMCP

server = FastMCP("notebook")


@dataclass
class Note:
    title: str
    words: int


@server.tool
def numbers() -> list[int]:
    """A list, which structured content cannot be: FastMCP wraps it, and says so."""
    return [1, 2**70, 3]


@server.tool
def note(title: str) -> Note:
    """An object with a schema."""
    return Note(title, len(title.split()))


@server.tool
def result() -> dict:
    """An object that only looks as if it were wrapped."""
    return {"result": "genuine"}


@server.tool
def refuse() -> str:
    """Always fails."""
    raise ValueError("not today")


server.run(show_banner=False)
