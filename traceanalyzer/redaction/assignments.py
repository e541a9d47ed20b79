"""Values that are known by their names: `WANDB_API_KEY=…`, `"password": "…"`, `--token …`, `USER=…`, `Cookie: …`.

Of a name its words count: `DB_PASSWORD_OLD`, `dbPassword` and `X-Api-Key` are what they say, `key_padding_mask`, `tokenizer` and
`num_tokens` are not. A name that may be harmless (`key`, `token`, `session`) hides a value only when that looks like a credential.
Time is linear in the text, since no part of a pattern gives back what it took.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from traceanalyzer.redaction.credentials import HIDDEN, is_random

USER, HOST = "user", "host"
"""What stands for the name of a user and of a host."""

HINT = (
    r"(?i:pass|pwd|pw\b|secret|token|key|auth|cred|cookie|sess|sid\b|dsn|connection.?str|connstr|sig|jwt|webhook|private|salt"
    r"|user|login|logname|uid\b|host|node|addr|server|machine|fqdn|account|endpoint|mysql|curl|redis|docker)"
)
"""Every text that `without_values` changes matches this (RE2)."""

_NAMED = re.compile(
    r"""(?<![\w$-]) (?<![\w$.-]\.) (?P<dashes> -*+ )
    (?P<name> [A-Za-z0-9_$] [\w.$-]*+ (?: [ ] (?i:key|id|token|access|secret|word|name|phrase|string|code) \b ){0,3}+ )
    (?P<between>
        \\*+["']?+ \]?+ \s{0,4}+ (?: => | := | ==?+ | :(?![:/]) | %3[DdAa] ) \s{0,4}+ [\[(]?+
      | \\*+["'] \s{0,4}+ , \s{0,4}+ (?=\\*["'])
    )""",
    re.VERBOSE,
)
_OPTION = re.compile(r"(?<![\w.$-])(?P<dashes>-++)(?P<name>[A-Za-z][\w.-]*+)(?P<between>\s{1,4}+)(?![-:=])")
_SPOKEN = re.compile(
    r"(?i)(?<![\w.$-])(?P<dashes>)(?P<name>\w{0,40}?(?:passw|passphrase|secret|token)\w{0,40}+)(?P<between>\s{1,4}+)"
)
_VALUE = re.compile(
    r"""(?P<quote> \\++["'] ) (?: [^"'\\]++ | \\(?!["'\\]) )*+
    | (?P<double> [bruf]?" ) (?: [^"\\] | \\. )*+
    | (?P<single> [bruf]?' ) (?: [^'\\] | \\. )*+
    | [^\s,;&"'<>\\]++""",
    re.VERBOSE | re.DOTALL,
)
_HEADER = re.compile(
    r"""(?i)(?<![\w-]) (?P<name> (?:proxy-)?authorization | (?:set-)?cookie2? ) (?P<between> \\*["']?\s{0,4}+ [:=] \s{0,4}+ \\*["']? )
    (?P<value> [^"'\n\r\\]++ )""",
    re.VERBOSE,
)
_ELEMENT = re.compile(r"<(?P<name>[A-Za-z_][\w.-]{0,60}+)>(?P<value>[^<]{1,4096}+)(?=</)")
_NETRC = re.compile(r"(?i)(?<!\w)(login|user)(\s{1,4}+)([^\s=:]++)(\s{1,4}+(?:password|passwd)\s{1,4}+)([^\s]++)")
# Commands whose short options take a user or a password.
_COMMAND = re.compile(
    r"(?<![\w-])(?:sshpass|mysql\w*|mariadb|docker|podman|redis-cli|ldapsearch|curl|wget|sqlcmd|smbclient|az|psql|mongo\w*)(?![\w])"
)
_SHORT_OPTION = re.compile(r"(?<=\s)(-[pPuUaw])(\s?)(?!\s)(\"[^\"]*+\"?|'[^']*+'?|[^\s\"']++)")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET = re.compile(
    r"password|passwd|passphrase|passwort|(?:^|_)(?:pgpass|dbpass|mypwd|userpwd|dbpwd)|secret|credential|(?:^|_)creds?(?:_|$)|authorization"
    r"|(?:api|access|private|secret|account|shared|master|signing|encryption|ssh|auth|storage|license|subscription|service|deploy|rsa|client"
    r"|session|aws|gcp|azure|openai|wandb|hf|ngc|nvidia)_?keys?(?:_|\d|$)"
    r"|(?:api|access|auth|bearer|refresh|session|bot|github|gitlab|git|hf|hub|slack|personal|private|security|oauth|deploy|sas|service|login"
    r"|secret|client|registry|id_rsa|wandb|npm|pypi|csrf|xsrf)_?tokens?(?:_|\d|$)"
    r"|connection_?str|(?:^|_)conn_?str|webhook|(?:^|_)jwt(?:_|$)|(?:^|_)dsn(?:_|$)|(?:^|_)cookies?(?:_|$)|session_?id"
)
_PASSWORD = re.compile(r"passw|passphrase|pwd|(?:^|_)pass(?:_|$)|pgpass|dbpass")
_MAYBE = frozenset((
    *("token", "key", "auth", "pass", "pwd", "pw", "session", "sid", "sig", "signature", "private", "salt", "pat"),
    *("cert",),
))  # fmt: skip
"""Words that name a credential or something of a model."""
_FACTS = frozenset((
    *("len", "length", "size", "count", "num", "limit", "timeout", "ttl", "type", "dim", "mask", "embedding", "path"),
    *("file", "dir", "enabled"),
))  # fmt: skip
"""A name that ends in one of these says something of a credential, and not the credential."""
_USERS = frozenset(
    ("user", "username", "user_name", "user_id", "login_name", "logname", "login", "userid", "loginname", "pguser")
)
_HOSTS = frozenset((
    *("host", "hostname", "nodename", "nodelist", "ipaddr", "addr", "server", "fqdn", "machine", "node", "nodeaddr"),
    *("endpoint", "client", "connection"),
))  # fmt: skip
_SURE_HOSTS = frozenset((
    *("hostname", "host_name", "nodename", "node_name", "master_addr", "fqdn", "server_name", "head_node"),
))  # fmt: skip
_PLAIN = frozenset((
    *("none", "null", "nil", "true", "false", "str", "int", "float", "bool", "bytes", "string", "optional", "any"),
    *("type", "tensor", "localhost", "unknown", "redacted", "hidden", "user", "host", "self", "yes", "no", "on"),
    *("off", "default", "enabled", "disabled", "required"),
))  # fmt: skip
"""Values that tell nothing."""
_NOBODY = frozenset((
    *("defined", "input", "time", "annotation", "code", "mode", "space", "data", "name", "id", "root", "the"),
    *("level", "kernel", "function", "range", "event", "scope", "specified", "provided", "supplied", "model"),
    *("device", "cpu", "gpu", "cuda", "memory", "pinned", "side"),
))  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|[\d.]+(?:e[-+]?\d+)?)(?:%|[a-zA-Z]{1,3})?")
_VARIABLE = re.compile(r"\$\w+|\$\{\w+\}?|%\(?\w*\)?[sd]|\{\w*\}|<[\w -]+>|\*+|x+|\.+|…")
_SIGN = re.compile(r"\s{0,2}(?:=>|:=|[:=])\s{0,2}(?![\s:=])")
# A name without a value is followed by the next one: `PASSWORD= PATH=/bin`.
_NEXT = re.compile(r"[A-Za-z_]\w*=(?!=|$)")
_NAME_OF_SOMEONE = re.compile(r"[A-Za-z_][\w.@+\\-]*")
_NAME_OF_HOST = re.compile(r"(?!0x)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)*\.?")
_CODE = re.compile(r"[A-Za-z]+|[A-Za-z]+\d{0,2}(?:[_.:-]+[A-Za-z]+\d{0,3}|[_.:-]+\d{1,4})*")


def without_values(text: str) -> str:
    """The text with the values of such names hidden. Idempotent."""
    lower = text.lower()
    if "authorization" in lower or "cookie" in lower:
        text = _HEADER.sub(_header, text)
    if "</" in text:
        text = _ELEMENT.sub(_element, text)
    if "passw" in lower:
        text = _NETRC.sub(rf"\1\2{USER}\4{HIDDEN}", text)
    text = _without_named(text, _NAMED)
    if "-" in text:
        text = _without_named(text, _OPTION)
    if "passw" in lower or "secret" in lower or "token" in lower:
        text = _without_named(text, _SPOKEN)
    return _SHORT_OPTION.sub(rf"\1\2{HIDDEN}", text) if _COMMAND.search(text) else text


def _without_named(text: str, pattern: re.Pattern[str]) -> str:
    """Without the values behind what the pattern finds. What is no value is looked at again: there may be a name in it."""
    done, at, parts = 0, 0, []
    while found := pattern.search(text, at):
        at = found.end()
        if not (kind := _kind(found["name"])) or not (value := _VALUE.match(text, at)):
            continue
        opening = value["quote"] or value["double"] or value["single"] or ""
        content = value[0][len(opening) :]
        if not opening:
            content = content.rstrip(")]}.:" if "(" not in content else "]}.:")
        option = bool(found["dashes"])
        if pattern is _SPOKEN or (found["between"].lstrip("\\\"'").startswith(",") and not option):
            # Not said with a sign: it must look like a credential, or stand where only a value does.
            paired = pattern is _NAMED and _begins_pair(text, found.start())
            if not paired and not (kind in (SECRET, MAYBE) and is_random(content)):
                continue
        if found["between"][-1].isspace() and _NEXT.match(content):
            continue
        shown = _shown(kind, content, option, found["name"])
        if shown == content:
            continue
        start = at + len(opening)
        parts += [text[done:start], shown]
        done = at = start + len(content)
        # A value may end in the name of the next one: `password: x.password: y`.
        if (more := _SIGN.match(text, at)) and _kind(content) == SECRET and (value := _VALUE.match(text, more.end())):
            parts += [more[0], HIDDEN]
            done = at = value.end()
    return "".join([*parts, text[done:]]) if parts else text


def _begins_pair(text: str, at: int) -> bool:
    """Whether the quoted name at this place is the first of a list: `('USER', 'x')`, and not one of many."""
    return text[max(at - 8, 0) : at].rstrip("\\\"'").endswith(("(", "["))


SECRET, MAYBE, SETTING, OF_USER, OF_HOST, SURE_HOST = "secret", "maybe", "setting", "user", "host", "sure host"


@lru_cache(maxsize=4096)
def _kind(name: str) -> str | None:
    """What a name says that its value is: a SECRET, a secret as a variable of the environment (SETTING) or MAYBE one, someone's or a
    machine's name. None for all other names."""
    words = [word.lower() for word in _WORDS.findall(name[-128:])]
    if not words:
        return None
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    last, joined, setting = words[-1], "_".join(words), name.isupper() and len(words) > 1
    return _secret_kind(words, joined, setting) or _name_kind(name, last, joined, setting)


def _secret_kind(words: Sequence[str], joined: str, setting: bool) -> str | None:
    if words[-1] in _FACTS:
        return None
    if _SECRET.search(joined):
        return SECRET
    if setting and _MAYBE.intersection(words):
        return SETTING
    return MAYBE if words[-1] in _MAYBE else None


def _name_kind(name: str, last: str, joined: str, setting: bool) -> str | None:
    if joined in _USERS or (setting and last in _USERS):
        return OF_USER
    if joined in _SURE_HOSTS or (name.isupper() and last in _HOSTS):
        return SURE_HOST
    return OF_HOST if last in _HOSTS else None


def _shown(kind: str, value: str, option: bool, name: str) -> str:
    """What is shown of the value."""
    plain = value.strip().strip("[](){}")
    if not plain or plain.lower() in _PLAIN or _VARIABLE.fullmatch(plain):
        return value
    if kind == OF_USER:
        someone = _NAME_OF_SOMEONE.fullmatch(plain) and plain.lower() not in _NOBODY
        return value.replace(plain, USER) if someone else value
    if kind in (OF_HOST, SURE_HOST):
        return _shown_host(value, plain, kind == SURE_HOST or (option and "_" not in plain))
    hides = {
        SECRET: lambda: not _NUMBER.fullmatch(plain) or len(plain) >= 6 or bool(_PASSWORD.search(name.lower())),
        SETTING: lambda: len(plain) >= 4 and (not _NUMBER.fullmatch(plain) or len(plain) >= 8),
        MAYBE: lambda: _looks_secret(plain, option, name.lower()),
    }
    return HIDDEN if hides[kind]() else value


def _shown_host(value: str, plain: str, sure: bool) -> str:
    host, colon, port = plain.partition(":")
    if (
        not _NAME_OF_HOST.fullmatch(host)
        or (colon and not port.isdigit())
        or re.fullmatch(r"[\d.]+[a-zA-Z]{0,3}", host)
    ):
        return value
    if not sure and not (re.search(r"[\d.-]", host) and re.search(r"[A-Za-z]", host)):
        return value
    if host.lower() in _NOBODY:
        return value
    return value.replace(plain, HOST + colon + port)


def _looks_secret(value: str, option: bool, name: str) -> bool:
    if _NUMBER.fullmatch(value):
        return len(value) >= 8 and value.isdigit()
    if option and name in ("token", "key", "auth", "pass", "pwd", "pw", "pat"):
        return True
    if len(value) < 6 or value[0] in "<[(" or "::" in value:
        return False
    if is_random(value):
        return True
    # A long word is what a token may be, and what no layer is called.
    wordy = name.endswith(("token", "pwd", "pw", "pat", "auth"))
    return (len(value) >= 8 and not _CODE.fullmatch(value)) or (
        wordy and len(value) >= 8 and value.islower() and value.isalnum()
    )


def _header(found: re.Match[str]) -> str:
    value = found["value"].strip()
    if len(value) < 6 or value.lower() in _PLAIN or value == HIDDEN or value.isdigit() or "::" in value[:2]:
        return found[0]
    return found["name"] + found["between"] + HIDDEN


def _element(found: re.Match[str]) -> str:
    kind = _kind(found["name"])
    return f"<{found['name']}>{_shown(kind, found['value'], False, found['name'])}" if kind else found[0]
