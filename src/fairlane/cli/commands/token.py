"""Command `token`: access tokens for the HTTP API."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.errors import CommandFailed, note
from fairlane.cli.options import json_option, store_option, utc_option
from fairlane.cli.parsing import duration, tags_of
from fairlane.cli.render import Cell, Column, console, names, span, table, when
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core.audit import Action
from fairlane.core.text import shown
from fairlane.core.tokens import Scope, Token, issued, successor
from fairlane.wire.times import iso_or_none

COLUMNS = (
    Column("token"),
    Column("name", least=8),
    Column("scopes", least=6, wide=60),
    Column("bound to", least=8, wide=110),
    Column("created", wide=85),
    Column("expires", wide=75),
    Column("kind", wide=100),
)

which_argument = click.argument("which", metavar="ID|NAME")


@click.group("token")
def token_command() -> None:
    """Create, list, rotate and revoke access tokens."""


@token_command.command("create")
@click.option("--name", required=True, metavar="NAME", help="The owner or the purpose.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it allows. May be repeated; admin includes submit and read.",
)
@click.option(
    "--expires", type=duration, metavar="T", help="Valid for 12h, 90d. [default: forever]"
)
@click.option("--exempt", is_flag=True, help="Accept its tasks even if too many are queued.")
@click.option(
    "--subject", metavar="TEXT", help="Whom it stands for: the owner of its tasks. [default: NAME]"
)
@click.option("--own", is_flag=True, help="Bind it to the tasks of its subject.")
@click.option("--queue", multiple=True, metavar="NAME", help="Bind it to a queue. May be repeated.")
@click.option("--tag", multiple=True, metavar="K=V", help="Bind it to a tag. May be repeated.")
@store_option
@json_option
def create_command(
    name: str,
    scopes: tuple[str, ...],
    expires: float | None,
    exempt: bool,
    subject: str | None,
    own: bool,
    queue: tuple[str, ...],
    tag: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> None:
    """Create a token and print its secret, once.

    A token that is bound (--own, --queue, --tag) sees, submits and changes only the tasks that meet
    all of its bounds. Its idempotency keys and unique keys belong to its subject.
    """
    new, secret = issued(
        name,
        scopes,
        expires,
        exempt=exempt,
        subject=subject,
        own=own,
        queues=queue or None,
        tags=tags_of(tag),
    )
    with open_store(store) as app:
        token = app.run_sync(app.backend.ops.put_token(new))
        record(app, Action.CREATE_TOKEN, token.name, **_detail(token))
    _show_secret(token, secret, as_json=as_json)


@token_command.command("list")
@click.option("--sessions", is_flag=True, help="Include browser sessions.")
@store_option
@utc_option
@json_option
def list_command(sessions: bool, store: str | None, utc: bool, as_json: bool) -> None:
    """List tokens, oldest first, without their secrets."""
    with open_store(store) as app:
        tokens = app.run_sync(app.backend.ops.tokens())
    tokens = [token for token in tokens if sessions or token.kind == "token"]
    if as_json:
        json_output.emit({"tokens": [json_output.token(token) for token in tokens]})
        return
    if not tokens:
        note("No tokens: make one with `fairlane token create`.")
        return
    rows = [
        (
            token.token_id,
            token.name,
            names(token.scopes),
            "everything" if token.bounds is None else str(token.bounds),
            Cell(when(token.created_at, utc=utc), "dim"),
            "never" if token.expires_at is None else when(token.expires_at, utc=utc),
            token.kind,
        )
        for token in tokens
    ]
    out = console()
    for line in table(COLUMNS, rows, out.width):
        out.print(line)


@token_command.command("revoke")
@which_argument
@store_option
@json_option
def revoke_command(which: str, store: str | None, as_json: bool) -> None:
    """Revoke a token and its sessions. A name revokes all tokens with that name."""
    with open_store(store) as app:
        tokens = _find_tokens(app, which)
        for token in tokens:
            app.run_sync(app.backend.ops.drop_token(token.token_id))
            record(app, Action.REVOKE_TOKEN, token.name, token_id=token.token_id)
    if as_json:
        json_output.emit({"revoked": [token.token_id for token in tokens]})
    for token in () if as_json else tokens:
        click.echo(f"Token {token.token_id} is revoked.")


@token_command.command("rotate")
@which_argument
@click.option(
    "--overlap",
    type=duration,
    default="1h",
    metavar="T",
    show_default=True,
    help="How long the old secret still works.",
)
@store_option
@json_option
def rotate_command(which: str, overlap: float, store: str | None, as_json: bool) -> None:
    """Print a new secret for a token; the old one works for a while.

    Name, scopes, subject, bounds and lifetime stay the same. Sessions made with the old secret end
    with it.
    """
    with open_store(store) as app:
        old, *others = _find_tokens(app, which)
        if others:
            raise CommandFailed(f"{1 + len(others)} tokens have this name: say which by its id.")
        token, secret = _rotate(app, old, overlap)
    _show_secret(token, secret, as_json=as_json)
    if not as_json:
        note(f"The old one works for {span(overlap)}.")


def _rotate(app: Fairlane, old: Token, overlap: float) -> tuple[Token, str]:
    ops = app.backend.ops
    new, secret = successor(old)
    # In this order there is always one secret that works.
    token = app.run_sync(ops.put_token(new))
    if not app.run_sync(ops.retire_token(old.token_id, overlap)):
        app.run_sync(ops.drop_token(token.token_id))
        raise CommandFailed(f"Token {old.token_id} was revoked in the meantime.")
    record(app, Action.ROTATE_TOKEN, token.name, replaces=old.token_id, **_detail(token))
    return token, secret


def _find_tokens(app: Fairlane, which: str) -> list[Token]:
    """Return the token with this id, or those with this name."""
    tokens = app.run_sync(app.backend.ops.tokens())
    found = [token for token in tokens if token.token_id == which] or [
        token for token in tokens if token.name == which and token.kind == "token"
    ]
    if not found:
        raise CommandFailed(f"There is no token {shown(which)}: see `fairlane token list`.")
    return found


def _detail(token: Token) -> dict[str, object]:
    return {
        "token_id": token.token_id,
        "scopes": sorted(token.scopes),
        "expires_at": iso_or_none(token.expires_at),
        "token_subject": None if token.subject == token.name else token.subject,
        "bound_to": None if token.bounds is None else str(token.bounds),
    }


def _show_secret(token: Token, secret: str, *, as_json: bool) -> None:
    if as_json:
        json_output.emit({**json_output.token(token), "secret": secret})
        return
    click.echo(secret)
    note("This is the only time that it is shown.")
