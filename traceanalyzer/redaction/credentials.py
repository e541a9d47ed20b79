"""Credentials that are known by their own form, wherever they stand: tokens by the prefix that their issuer gives them, web tokens,
private keys, headers.

The prefixes are what issuers and secret scanners publish. Every pattern takes time linear in the text: what repeats is possessive or
bounded, and begins only where a word begins.
"""

from __future__ import annotations

import re

HIDDEN = "…"
"""What stands for a credential."""

# AWS's key ids: capitals and digits throughout.
_CAPITALS = "AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA|APKA|LTAI"
# These begin no word of a program: what follows them is a token unless it is made of plain words.
_PREFIXES = (
    *("gh[pousr]_", "github_pat_", "glpat-", "gl(?:ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-", "xox[abeoprs][-.]"),
    *("xapp-", "nvapi-", "hf_", "api_org_", "npm_", "pypi-", "sk-", "(?:sk|rk|pk)_(?:live|test|prod)_", "whsec_"),
    *("dapi", "dckr_(?:pat|oat)_", "do[opr]_v1_", "shp(?:at|ss|ca|pa)_", r"SG\.", "AIza", r"ya29\.", "GOCSPX-"),
    *("gls?[ac]_", "lin_api_", "ntn_", "secret_", "figd_", "PMAK-", "rubygems_", "sntry[su]_"),
    *("pscale_(?:pw|tkn|oauth)_", "r8_", "gsk_", "xai-", "pplx-", "tvly-", "AGE-SECRET-KEY-", r"hv[sbr]\.", "tskey-"),
    *(r"dp\.(?:pt|st|ct|sa|scim|audit)\.", "ATATT", "ATCTT", "ATBB", "NRAK-", "key-", "AKCp", "nfp_", "vercel_"),
    *("sbp_", "phc_", "wandb_v1_", "sq0[a-z]{3}-", "EAAA", "bkua_", "CLOJARS_", "FLWSECK", r"sl\.", "tok_", "pat-"),
    *("pat_", "nvcf_", "cfat_", "cf[kp]_", "lsv2_(?:pt|sk)_", "fal_", "jina_", "tgp_v1_", "pcsk_", "esecret_"),
    *("AQVN", "CCIPAT_", "shippo_(?:live|test)_"),
)  # fmt: skip
TOKENS = "|".join(_PREFIXES)
"""How tokens begin; case tells."""
HINT = "|".join(
    (
        rf"(?:{_CAPITALS})[A-Z0-9]",
        rf"(?:{TOKENS})",
        r"eyJ|(?:SK|AC)[0-9a-f]|PRIVATE KEY|8Q~|\d:AA",
        r"(?i:bearer|basic|digest|negotiate)\s",
        r"[MNO][\w-]+\.[\w-]+\.|[+/][A-Za-z0-9+/]+=",
    )
)
"""Every text that `without_credentials` changes matches this (RE2)."""

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL
)
_TOKEN = re.compile(
    rf"""(?<![A-Za-z0-9])(?:
      (?P<capitals> (?:{_CAPITALS}) [A-Z0-9]{{12,}}+ (?![a-z]) )
    | (?P<web> eyJ [\w-]{{4,}}+ (?: \. [\w-]++ )++ )
    | (?P<prefix> {TOKENS} ) (?P<rest> [A-Za-z0-9_] [\w.~-]*+ )
    | (?P<twilio> (?:SK|AC) [0-9a-f]{{32}} (?![\w-]) )
    | (?P<telegram> \d{{6,12}} : AA [\w-]{{20,}}+ )
    | (?P<discord> [MNO][\w-]{{20,30}}+ \. [\w-]{{4,8}}+ \. [\w-]{{20,}}+ )
    )""",
    re.VERBOSE,
)
_AZURE = re.compile(r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{20,}+")
# An account key and its like: 40 bytes and more in base64, with padding.
_BASE64 = re.compile(r"(?<![\w+/=-])(?=[^\s=]*[+/])[A-Za-z0-9+/]{54,}+={1,2}(?![\w=])")
_SCHEME = re.compile(r"(?i)(?<![\w])(bearer|basic|digest|negotiate)(\s{1,4}+)([\w.~+/=-]{6,}+)")


def without_credentials(text: str) -> str:
    """The text without credentials that show by themselves. Idempotent."""
    if "PRIVATE KEY" in text:
        text = _KEY_BLOCK.sub(HIDDEN, text)
    text = _TOKEN.sub(_token, text)
    if "8Q~" in text:
        text = _AZURE.sub(HIDDEN, text)
    if "=" in text:
        text = _BASE64.sub(HIDDEN, text)
    return _SCHEME.sub(_scheme, text)


def _token(found: re.Match[str]) -> str:
    if found["prefix"] is None:
        return HIDDEN
    rest = found["rest"].rstrip(".")
    cut = found.string[found.end() : found.end() + 1] == HIDDEN and re.search(r"\d", rest)
    if not cut and (len(rest) < 10 or not is_random(rest)):
        return found[0]
    return HIDDEN + found["rest"][len(rest) :]


def _scheme(found: re.Match[str]) -> str:
    value = found[3].rstrip(".")
    # Such as "basic attention": a word is no token, but for what base64 makes of one.
    if not (is_random(value) or value.endswith("=") or (len(value) >= 16 and value.isalnum())):
        return found[0]
    return found[1] + found[2] + HIDDEN


_PIECE = re.compile(r"[A-Za-z0-9]+")
_TURN = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])|[a-z](?=[A-Z])")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBERED_WORD = re.compile(r"[A-Za-z]*\d{0,4}|\d{1,6}")


def is_random(text: str) -> bool:
    """Whether a text looks drawn rather than written: letters and digits mixed without sense, or much longer than words are.

    Words, names of classes, numbers, and what is put together of these with `_`, `-` or `.` are written.
    """
    return any(_is_random_piece(piece) for piece in _PIECE.findall(text[:512]))


def _is_random_piece(piece: str) -> bool:
    if len(piece) < 8:
        return False
    if _NUMBERED_WORD.fullmatch(piece):
        words = [len(word) for word in _WORD.findall(piece)]
        return bool(words) and (max(words) > 17 or (len(piece) >= 12 and sum(words) < 3 * len(words)))
    turns = len(_TURN.findall(piece))
    return turns >= 2 or len(piece) >= 20 or (turns > 0 and len(piece) >= 10)
