"""`mcp-bindgen lock`: pin the reviewed contracts of servers, and compare live servers with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.cli.options import SERVERS, Commands, DryRun, Out, ReportFormat
from mcp_bindgen.cli.output import print_report
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.contract.comparison import drift_report as lock_report
from mcp_bindgen.contract.comparison.drift import Mode, check_server
from mcp_bindgen.drift.callers import Callers
from mcp_bindgen.drift.changes import Change, Fact, Verdict
from mcp_bindgen.drift.snapshot import Snapshot
from mcp_bindgen.host.configuration import BadConfig, Entry, read
from mcp_bindgen.lock import BadLock, Lock, LockedServer
from mcp_bindgen.report import LOCATED, Format, Report
from mcp_bindgen.report.document import plural
from mcp_bindgen.spec.errors import BadInput, locating, printable
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.toml import read_toml
from mcp_bindgen.spec.transaction import save

from .drift_options import CallersName, Failure, callers_of, fails
from .live import Connection, offers
from .servers import named, public, redacted

CONFIGURATIONS = ("mcp.json", ".mcp.json")
"""Files of servers that are read if none is named."""

_LAUNCHERS = read_toml(Path(__file__).with_name("launchers.toml"))
_VERSION = re.compile(r"(?P<package>@?[^@=<>~!\s]+)(?:@|==)(?P<version>[^@\s]+)")
_TAG = re.compile(r"(?P<package>.+?)(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>sha256:[0-9a-f]+))?")


lock = Commands(
    "Pin the contracts of servers in mcp.lock, and compare live servers with it.",
    default="update",
    no_args_is_help=False,
)

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CONFIG|SERVER",
        help=f"An `mcpServers` file, for all of its servers, or {SERVERS[0].lower()}{SERVERS[1:]} "
        f"By default {' or '.join(CONFIGURATIONS)}.",
    ),
]
LockFile = Annotated[Path, typer.Option("--lock", metavar="FILE", help="The lock file.")]
Keep = Annotated[
    int, typer.Option("--keep", metavar="N", min=0, max=50, help="Number of earlier contracts to keep for each server.")
]


@lock.command("update")
def update(
    servers: Sources = None,
    out: Out = Path("mcp.lock"),
    keep: Keep = 5,
    callers: CallersName = None,
    dry_run: DryRun = False,
    *,
    connection: Connection,
) -> None:
    """Write the contracts of live servers to a lock file, and print the changes; `update` may be left out.

    Review the file like code. Servers that are not named stay in it. Earlier contracts are kept for
    `lock check --transitive`. The file records the callers for whom changes are judged: at first those of the
    configuration, or sensible ones.

    Examples:

    `mcp-bindgen lock update mcp.json --out mcp.lock`

    `mcp-bindgen lock`

    `mcp-bindgen lock 'npx -y @modelcontextprotocol/server-everything' --keep 0`

    `mcp-bindgen lock --callers strict`
    """
    path = out or Path("mcp.lock")
    if path.is_dir():
        raise BadInput("this is a folder", file=path, fix="give --out FILE")
    known = _read(path) if path.exists() or path.is_symlink() else Lock(path)
    if callers is not None or not known.servers:
        known = replace(known, callers=callers_of(callers))
    found, changes = known, dict[str, Sequence[Change]]()
    for name, words, asked in _named(servers or ()):
        live = _live(words, connection)
        _warn_of_version(name, asked)
        if name in known.servers:
            changes[name] = check_server(known.servers[name], live, known.callers)
            found = found.with_server(name, known.servers[name].updated(asked, live, keep))
        else:
            say(f"{name}: {_counted(live)}, MCP {live.revision}")
            found = found.with_server(name, LockedServer(asked, live))
    if changes:
        print_report(_report(changes, known.callers))
    if dry_run:
        return
    text = printable(json.dumps(found.document(), indent=2, ensure_ascii=False), keep="\n") + "\n"
    if path.is_file() and not path.is_symlink() and path.read_bytes() == text.encode():
        say(f"{path} is up to date.")
        return
    save(path, text, "choose another file for --out")
    say(f"Wrote {path}")


@lock.command("check")
def check(
    servers: Sources = None,
    file: LockFile = Path("mcp.lock"),
    mode: Annotated[Mode, typer.Option("--mode", help="Direction in which contracts must be compatible.")] = (
        Mode.BACKWARD
    ),
    transitive: Annotated[
        bool, typer.Option("--transitive", help="Compare with the earlier contracts of the lock, too.")
    ] = False,
    format: ReportFormat = Format.TEXT,
    out: Out = None,
    callers: CallersName = None,
    fail_on: Failure = "text",
    *,
    connection: Connection,
) -> None:
    """Compare live servers with the lock file.

    Changes are judged for the callers of the lock, or for those of `--callers`. A text can steer a model, so the
    default of `--fail-on` is `text`: exit code 1 for changed texts and for schemas without a proof that callers work.
    `unproven` and `breaking` let texts pass, `any` fails for each difference.

    Examples:

    `mcp-bindgen lock check`

    `mcp-bindgen lock check mcp.json --format sarif --out lock.sarif`

    `mcp-bindgen lock check mcp.json#weather --mode full --transitive`
    """
    known = _read(file)
    profile = known.callers if callers is None else callers_of(callers)
    found: dict[str, Sequence[Change]] = {}
    failed: BadInput | None = None
    for name, words, asked in _named(servers or ()):
        if name not in known.servers:
            found[name] = [Change("server", "", [Fact(Verdict.BREAKING, "server-added", "the lock lacks this server")])]
            continue
        try:
            live = _live(words, connection)
        except BadInput as error:
            say(f"error: {error}", err=True)
            failed = error
            continue
        changes = check_server(known.servers[name], live, profile, mode, transitive=transitive)
        found[name] = [*_asked(known.servers[name], asked), *changes]
    places = lock_report.LockPlaces(file) if format in LOCATED else None
    print_report(_report(found, profile, places), format, out)
    if failed is not None:
        raise typer.Exit(2)
    if fails(fail_on, (one for all_ in found.values() for one in all_)):
        raise typer.Exit(1)


def _report(servers: lock_report.Servers, callers: Callers, places: lock_report.LockPlaces | None = None) -> Report:
    return Report(
        partial(lock_report.document, servers, callers, places), partial(lock_report.record, servers, callers)
    )


def _read(path: Path) -> Lock:
    with locating(None, BadLock):
        return Lock.read(path)


def _live(words: str, connection: Connection) -> Snapshot:
    return Snapshot.of(offers(words, connection).document)


def _named(sources: Sequence[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield name, words and asked version of each server; raise `BadInput` for none, or for two of one name."""
    given = list(sources) or [next((name for name in CONFIGURATIONS if Path(name).is_file()), "")]
    if given == [""]:
        raise BadInput("no servers are named", fix=f"give a file of servers; {' or '.join(CONFIGURATIONS)} is not here")
    seen: set[str] = set()
    for source in given:
        for words in _servers(source):
            found = named(words)
            if found.name in seen:
                raise BadInput(f"two servers have the name {found.name!r}", fix="lock them in different files")
            seen.add(found.name)
            yield found.name, words, asked_of(found.entry)


def _servers(source: str) -> Iterator[str]:
    """Yield the words for each server of a file that is not disabled, or the source itself."""
    path = Path(source)
    if path.suffix != ".json" or "://" in source or (" " in source and not path.is_file()):
        yield source
        return
    with locating(path, BadConfig):
        servers = read(path)
    if not servers:
        raise BadInput("there are no servers in it", file=path)
    for name, entry in servers.items():
        if is_object(entry) and entry.get("disabled") is True:
            say(f"{name}: disabled, left out")
        else:
            yield f"{source}#{name}"


def asked_of(entry: Entry) -> dict[str, str]:
    """Return the request of an entry: `command` with `package` and `version`, or `url` without secrets."""
    if entry.url is not None:
        return {"url": public(entry.url).partition("?")[0]}
    command = Path(entry.command or "").name
    found = {"command": command}
    program = command.removesuffix(".exe").removesuffix(".cmd")
    is_image = program in _LAUNCHERS["images"]
    start = _LAUNCHERS["images" if is_image else "packages"].get(program)
    if start is None or [*entry.args[: len(start)]] != start:
        return found
    package = redacted([_package(iter(entry.args[len(start) :]), is_image=is_image)])[0]
    match = (_TAG if is_image else _VERSION).fullmatch(package)
    if match is None:
        return {**found, "package": package} if package else found
    version = match.groupdict().get("version") or match.groupdict().get("digest") or match.groupdict().get("tag")
    return {**found, "package": match["package"], **({"version": version} if version else {})}


def _package(words: Iterator[str], *, is_image: bool) -> str:
    """Return the package or image that the arguments of a launcher name; empty if they name none."""
    for word in words:
        option, equals, value = word.partition("=")
        if option in _LAUNCHERS["package_options"] and not is_image:
            return value if equals else next(words, "")
        if not word.startswith("-"):
            return word
        if option in _LAUNCHERS["value_options"] and not equals:
            next(words, None)
    return ""


def _warn_of_version(name: str, asked: dict[str, str]) -> None:
    if "package" in asked and asked.get("version", "latest") == "latest":
        say(f"warning: {name}: {asked['package']} has no version; the next start may run another one", err=True)


def _asked(locked: LockedServer, asked: dict[str, str]) -> Iterator[Change]:
    """Yield a change of the version in the configuration, if it changed; another version is no break."""
    if asked != locked.asked:
        is_version = {**asked, "version": ""} == {**locked.asked, "version": ""}
        sides = (" ".join(one.values()) for one in (locked.asked, asked))
        message = "the configuration asked for {}, asks for {}".format(*sides)
        verdict = Verdict.COMPATIBLE if is_version else Verdict.UNPROVEN
        yield Change("server", "", [Fact(verdict, "request-changed", message)])


def _counted(live: Snapshot) -> str:
    counts = [plural(len(found), kind) for kind, found in live.entries.items() if found]
    return ", ".join(counts) or "nothing"
