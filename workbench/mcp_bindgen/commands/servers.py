"""Servers that words of the command line name: SERVER has one meaning in every command.

`FORMS` has the forms; the first that fits applies. `docs/how-to/call-a-server.md` shows them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

from mcp_bindgen.app.loading import split
from mcp_bindgen.host.configuration import BadConfig, Entry, command_words, entry, read
from mcp_bindgen.runtime import connecting
from mcp_bindgen.runtime.connecting import scheme_of
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.session.targets import TRANSPORTS
from mcp_bindgen.spec.errors import BadInput, locating, suggestion
from mcp_bindgen.tap.redaction import CREDENTIAL_NAMES

_COPIED = ("command", "args", "env", "cwd", "url", "headers", "type")
_GUARD = "__main__"
_RUNS = re.compile(r"^(?:\w+\.)*run\(", re.MULTILINE)
"""Text of a file that serves when it is imported, too."""
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_NAMES = (
    rf"(?:{CREDENTIAL_NAMES}|key(?!(?<![\w-]key)[\s:])|token(?!s)|auth(?!ors?\b)|(?<![a-z])(?:bearer|pass|pat)(?![a-z]))"
    r"(?![\w-]{0,40}(?:board|count|file|limit|path|type|words?)\b)[\w.-]{0,40}"
)
"""Names of options, variables, headers and parameters that contain secrets; part of a longer name."""
_SECRET = re.compile(_NAMES, re.IGNORECASE)
_IN_TEXT = re.compile(
    rf"((?:{_NAMES}[\"']?\s*[=:](?!//)[\s\"']*+(?:(?:bearer|basic|token)\b)?+|"
    rf"--?[\w-]{{0,40}}{_NAMES}\s(?!\s*-)|\b(?:bearer|basic)\s)[\s\"']*+)(?=\S).*",
    re.IGNORECASE | re.DOTALL,
)
"""The rest of a text with a setting, a header, a member of an object, or an option in the line of a shell."""
_SETTING = re.compile(r"((?:^|^--[\w-]+=|^-\w=?|[\s;?&#(])[A-Za-z_][\w.-]*=)(?=[^=]).*", re.DOTALL)
_WITH_SECRET = ("-H", "--header", "-p", "-u", "--user")
_USER = re.compile(
    r"(?<=://)(?![\w.-]*:@)(?:(?<=http://)|(?<=https://)|(?![\w.-]+@))"
    r"(?:[^/?#\s\"']+|[^/:\[]*:(?!\d*(?:[/?#]|$))[^\s\"']{0,200}?)@"
)
"""User and password in a URL; a mere user only over HTTP, where it may be a token."""


@dataclass(frozen=True)
class Named:
    """A server that words of the command line name.

    Attributes:
        entry: The program to start, or the URL.
        name: A short name for it, for the configuration of a host.
        source: The folder of its code; by default the current one.
        module: The file or module of its `App`, perhaps with `:NAME`; `None` if importing it would serve it.
        is_entry: True if the words name an entry of a file.
        ignored: Members of that entry that `install` does not copy.
    """

    entry: Entry
    name: str
    source: Path = field(default_factory=Path)
    module: str | None = None
    is_entry: bool = False
    ignored: tuple[str, ...] = ()

    def login_command(self, words: str) -> str:
        """Return the shell command that logs in to the server."""
        return self.entry.login_command(words if self.is_entry else None)


def named(words: str, env: Sequence[str] = (), headers: Mapping[str, str] = MappingProxyType({})) -> Named:
    """Return the server that words name.

    Args:
        words: A command line, or another of `FORMS`.
        env: `KEY=VALUE` settings for a server that is started.
        headers: HTTP headers for a server at a URL.

    Raises:
        BadInput: The words name no server, or a setting is invalid.
        NotInstalled: The server is at a URL, and httpx2 is not installed.
    """
    found = next(found for find in FORMS.values() if (found := find(words)) is not None)
    if found.entry.command is None:
        if env:
            raise BadInput("--env is for servers that are started here")
        require("a server at a URL", "httpx2", extra="http")
        return replace(found, entry=replace(found.entry, headers={**found.entry.headers, **headers}))
    if headers:
        raise BadInput("--header and --bearer-env are for URLs", fix="pass credentials to a program with --env")
    return replace(found, entry=replace(found.entry, env={**found.entry.env, **dict(map(_setting, env))}))


def unexpanded(words: str) -> Named:
    """Return the server that words name; the entry of a file keeps its references to variables."""
    return _url(words) or _of_configuration(words, expands=False) or named(words)


def redacted(words: Sequence[str], *, all_settings: bool = True) -> list[str]:
    """Return the words of a command line with `...` in place of secrets; the rest of such a word is left out.

    Args:
        words: The program and its arguments.
        all_settings: True to treat all variables, all headers and the values of options such as `-p` as secrets.
    """
    found, option = list[str](), ""
    for word in words:
        is_value = word and "=" not in option and not word.startswith("-")
        if is_value and (_SECRET.search(option) or (all_settings and option in _WITH_SECRET)):
            shown = "..."
        else:
            shown = _IN_TEXT.sub(r"\1...", _USER.sub("", word))
            shown = _SETTING.sub(r"\1...", shown) if all_settings else shown
        found.append(shown)
        option = word if word.startswith("-") else ""
    return found


def public(words: str) -> str:
    """Return the words that name a server for messages and files, without passwords, keys and other secrets.

    A URL has no user, password, query and fragment.
    """
    if scheme_of(words) is None:
        try:
            given = connecting.command_words(words)
        except ValueError:
            return " ".join(redacted(words.split()))
        shown = redacted(given)
        return words if shown == given else shlex.join(shown)
    try:
        parts = urlsplit(words)
        _ = parts.port  # raises an error for a password with a slash
    except ValueError:
        return f"{scheme_of(words)}://..."
    query = "..." if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise BadInput(f"--env {key}{equals} is not KEY=VALUE")
    return key, value


def headers_of(pairs: Sequence[str], bearer_env: str | None) -> dict[str, str]:
    """Return the HTTP headers that `--header NAME=VALUE` and `--bearer-env KEY` state; raise `BadInput`."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or _HEADER.fullmatch(name) is None or not value.isprintable():
            raise BadInput(f"--header {name}{equals} is not NAME=VALUE", fix="as in: --header X-API-Key=abc")
        found[name] = value
    if bearer_env is not None:
        token = os.environ.get(bearer_env, "")
        if not token or not token.isprintable() or " " in token:
            problem = "holds no token" if token else "is not set"
            raise BadInput(f"the environment variable {bearer_env} {problem}", fix="put the token of the server there")
        found["Authorization"] = f"Bearer {token}"
    return found


# --- forms ----------------------------------------------------------------------------------------------------


def _url(words: str) -> Named | None:
    scheme = scheme_of(words)
    if scheme is None:
        return None
    with locating(None, ValueError):
        TRANSPORTS.find(scheme)
    host = words.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
    return Named(Entry(url=words), host.removeprefix("www.").split(".")[0])


def _of_configuration(words: str, *, expands: bool = True) -> Named | None:
    stem, mark, name = words.partition(".json#")
    path = Path(f"{stem}.json")
    if not mark or (" " in stem and not path.is_file()):
        return None
    with locating(path, BadConfig):
        servers = read(path)
        if name not in servers:
            raise BadInput(f"no server {name!r}", fix=suggestion(name, servers) if servers else None)
        found = entry(name, servers[name], path, expands=expands)
    ignored = tuple(member for member in servers[name] if member not in _COPIED)
    return Named(found, name, is_entry=True, ignored=ignored)


def _file(words: str) -> Named | None:
    place, name = split(words)
    path = Path(place)
    if path.suffix != ".py" or (" " in place and not path.is_file()):
        return None
    if not path.is_file():
        beside = [one.name for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise BadInput("there is no such file", file=path, fix=suggestion(path.name, beside, "check the path"))
    return _python(str(path.resolve()), name, path, Named(Entry(sys.executable), path.stem, path.parent))


def _project(words: str) -> Named | None:
    folder = Path(words)
    if not words or not folder.is_dir() or (folder / "__main__.py").is_file() > (folder / "pyproject.toml").is_file():
        return None
    from mcp_bindgen.scaffold.project import Project  # needs a reader of TOML

    project = Project.read(folder)
    own = folder.resolve() / ".venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    path = {} if own.exists() else {"PYTHONPATH": str(project.source.parent.resolve())}
    python = str(own) if own.exists() else sys.executable
    return Named(Entry(python, ("-m", project.package), path), project.name, project.source)


def _module(words: str) -> Named | None:
    place, name = split(words)
    parts = place.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    if not name and (shutil.which(words) is not None or Path(words).is_file()):
        return None
    here = Path.cwd()
    files = (here.joinpath(*parts, "__main__.py"), here.joinpath(*parts).with_suffix(".py"))
    file = next((one for one in files if one.is_file()), None)
    if file is None and find_spec(parts[0]) is None:
        if not name:
            return None  # a command
        raise BadInput(f"there is no module {place!r}", fix="run this in its folder, or install it")
    return _python(place, name, file, Named(Entry(sys.executable, env={"PYTHONPATH": str(here)}), parts[-1]))


def _python(place: str, name: str, file: Path | None, found: Named) -> Named:
    """Return a server in Python with its arguments: the file runs if it serves by itself, else its `App` is served."""
    text = _GUARD if file is None or file.stem == _GUARD else file.read_text("utf-8", "replace")
    runs = _RUNS.search(text) is not None
    module = f"{place}:{name}" if name else place
    arguments: tuple[str, ...] = ("-m", "mcp_bindgen.app", module)
    if not name and (runs or _GUARD in text):
        arguments = (place,) if place.endswith(".py") else ("-m", place)
    return replace(found, entry=replace(found.entry, args=arguments), module=None if runs else module)


def _command(words: str) -> Named | None:
    with locating(None, ValueError):
        program, *arguments = command_words(words)
    plain = [word for word in redacted(arguments) if not word.startswith("-") and "..." not in word] or [program]
    name = re.sub(r"@[\w.-]+$", "", plain[0].rstrip("/")).rpartition("/")[2]
    return Named(Entry(program, tuple(arguments)), name.removesuffix(".py").removesuffix(".js"))


FORMS: Mapping[str, Callable[[str], Named | None]] = {
    "URL": _url,
    "FILE.json#NAME": _of_configuration,
    "FILE.py": _file,
    "DIR": _project,
    "MODULE:NAME": _module,
    "COMMAND": _command,
}
"""Form of the words that name a server -> function from words to the server; `None` for words of another form."""
