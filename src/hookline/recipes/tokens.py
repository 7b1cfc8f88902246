"""The keys and tokens that vendors issue, by their formats, and other secrets by name.

One row per format: what it is, a text that each one holds, and a pattern. A pattern is
tried only where its text is found, and every repetition in it is bounded or runs over
one class of characters: a megabyte is searched in a few hundredths of a second.
"""

from __future__ import annotations

import re
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# ``@`` is a letter or digit, ``#`` a hexadecimal digit, ``~`` a letter, digit, _ or -.
_ROWS = r"""
an AWS access key | AKIA | AKIA[A-Z0-9]{16}(?![A-Z0-9])
an AWS access key | ASIA | ASIA[A-Z0-9]{16}(?![A-Z0-9])
an AWS access key | ABIA | ABIA[A-Z0-9]{16}(?![A-Z0-9])
an AWS secret | aws_secret | aws_secret\w{0,20}["'\s:=]{1,6}[A-Za-z0-9/+]{40}
an AWS Bedrock key | ABSK | ABSK[A-Za-z0-9+/]{80,}
an AWS Bedrock key | bedrock-api | bedrock-api-key-[A-Za-z0-9+/=]{40,}
an Alibaba key | LTAI | LTAI@{16,24}(?!@)
a Tencent key | AKID | AKID@{32}(?!@)
a Yandex key | AQVN | AQVN~{35,38}
a Yandex token | y0_ | y0_~{50,}
a Scaleway key | SCW | SCW[A-Z0-9]{17}(?![A-Z0-9])
an Azure storage key | AccountKey= | AccountKey=[A-Za-z0-9+/]{86}==
an Azure client secret | Q~ | [\w.]{3}\dQ\~[\w\~.-]{31,34}
a Google key | AIza | AIza~{35}
a Google token | ya29. | ya29\.~{20,}
a Google client secret | GOCSPX- | GOCSPX-~{24,}
a Google refresh token | 1//0 | 1//0~{40,}
a DigitalOcean token | _v1_ | do[opr]_v1_#{64}
a Heroku key | HRKU- | HRKU-~{36,}
a Fly token | fo1_ | fo1_~{43}
a Fly token | fm2_ | fm2_[A-Za-z0-9+/]{80,}
a Cloudflare key | v1.0- | v1\.0-#{24}-#{146}
a Netlify token | nfp_ | nfp_@{36,}
a Render key | rnd_ | rnd_@{28,}
a Supabase token | sbp_ | sbp_#{40}
a Supabase key | sb_secret_ | sb_secret_~{20,}
a PlanetScale token | pscale_ | pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}
a Neon key | napi_ | napi_@{48,}
a Tailscale key | tskey- | tskey-[a-z]{2,10}-@{8,}-@{16,}
a Doppler token | dp. | dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}
an Infracost key | ico- | ico-@{32}
a Pulumi token | pul- | pul-#{40}
a Terraform token | .atlasv1. | @{14}\.atlasv1\.[\w=-]{60,}
a Vault token | hvs. | hvs\.~{24,}
a Vault token | hvb. | hvb\.~{100,}
a Prefect key | pnu_ | pnu_@{36}
an OpenShift token | sha256~ | sha256\~~{43}
a 1Password token | ops_eyJ | ops_eyJ[A-Za-z0-9+/=]{100,}
a 1Password key | A3- | A3-[A-Z0-9]{6}-[A-Z0-9-]{11,12}(?:-[A-Z0-9]{5}){3}
an age key | AGE-SECRET- | AGE-SECRET-KEY-1[A-Z0-9]{58}
a GitHub token | ghp_ | ghp_@{36}
a GitHub token | gho_ | gho_@{36}
a GitHub token | ghu_ | ghu_@{36}
a GitHub token | ghs_ | ghs_@{36}
a GitHub token | ghr_ | ghr_@{36}
a GitHub token | github_pat_ | github_pat_\w{22,}
a GitLab token | glpat- | glpat-~{20,}
a GitLab token | gldt- | gldt-~{20,}
a GitLab token | glrt- | glrt-~{20,}
a GitLab token | glptt- | glptt-~{20,}
a GitLab token | glsoat- | glsoat-~{20,}
a GitLab token | glcbt- | glcbt-~{20,}
a GitLab token | glagent- | glagent-~{40,}
a GitLab token | gloas- | gloas-~{40,}
a GitLab token | GR1348941 | GR1348941~{20}
a Bitbucket token | ATBB | ATBB@{28,}
an Atlassian token | ATATT3 | ATATT3[\w=-]{60,}
a Buildkite token | bk | bk(?:ua|ba|ct|at|pt)_#{40}
a CircleCI token | CCIPAT_ | CCIPAT_@{22}_#{40}
a Sonar token | sq | sq[aup]_#{40}
a Sourcegraph token | sgp_ | sgp_(?:#{16}_|local_)?#{40}
an npm token | npm_ | npm_@{36}
a PyPI token | pypi- | pypi-~{50,}
a RubyGems key | rubygems_ | rubygems_#{48}
a crates.io token | cio | cio@{32}(?!@)
a Clojars token | CLOJARS_ | CLOJARS_@{60}
a NuGet key | oy2 | oy2[a-z0-9]{43}(?!@)
a Docker token | dckr_ | dckr_(?:pat|oat)_~{27,}
a JFrog key | AKCp | AKCp@{60,}
a JFrog token | cmVmd | cmVmd@{59}(?!@)
an Octopus key | API- | API-[A-Z0-9]{25,32}(?![A-Z0-9])
a Slack token | xox | xox[abeoprs]-[A-Za-z0-9-]{10,}
a Slack token | xapp- | xapp-\d-[A-Z0-9]{6,}-\d{6,}-[a-z0-9]{20,}
a Slack webhook | hooks.slack | hooks\.slack\.com/[a-z]{7,9}/[\w/+]{30,}
a Discord webhook | /webhooks/ | discord(?:app)?\.com/api/webhooks/\d{15,20}/~{50,}
a Discord token | . | [MNO]~{23,25}\.~{6}\.~{27,38}(?!~)
a Teams webhook | .webhook.of | \.webhook\.office\.com/\w+/[0-9a-f\@-]{73}/\w+/#{32}
a Telegram token | :AA | \d{8,10}:AA~{33}(?!~)
a Twilio key | SK | SK#{32}(?!@)
a SendGrid key | SG. | SG\.~{16,32}\.~{32,64}
a Mailgun key | key- | key-#{32}(?!@)
a Mailchimp key | -us | #{32}-us\d{1,2}(?!\d)
a Brevo key | xkeysib- | xkeysib-#{64}-@{16}
a Resend key | re_ | re_@{8}_@{20,}
a Postman key | PMAK- | PMAK-#{24}-#{34}
a payment key | k_live_ | [rs]k_live_@{16,}
a payment key | k_prod_ | [rs]k_prod_@{16,}
a webhook's signing secret | whsec_ | whsec_[A-Za-z0-9+/]{32,}
a Shopify token | shp | shp(?:at|ca|pa|ss|ua)_#{32}
a Square token | sq0 | sq0(?:atp|csp|idp)-~{22,}
a Square token | EAAA | EAAA~{56,}
a Braintree token | access_token | access_token\$production\$[0-9a-z]{16}\$#{32}
a Plaid token | access- | access-[a-z]{7,11}-#{8}-#{4}-#{4}-#{4}-#{12}
a Razorpay key | rzp_live_ | rzp_live_@{14,}
a Flutterwave key | FLWSECK | FLWSECK(?:_TEST)?-@{12,}
a Shippo token | shippo_live_ | shippo_live_#{40}
an EasyPost key | EZAK | EZAK@{54}
a Duffel token | duffel_live_ | duffel_live_[\w=-]{43}
a Facebook token | EAA | EAA@{90,}
a Dropbox token | sl. | sl\.[\w.=-]{120,}
a Twitter token | AAAAAAAAAA | A{20,}[A-Za-z0-9%]{60,}
a Mapbox token | sk.eyJ | sk\.eyJ~{40,}\.~{20,}
a Linear key | lin_ | lin_(?:api|oauth)_@{32,}
a Notion token | ntn_ | ntn_@{40,}
an Airtable token | pat | pat@{14}\.#{64}
a Figma token | figd_ | figd_~{36,}
a Typeform token | tfp_ | tfp_[\w.=-]{40,}
a Contentful token | CFPAT- | CFPAT-~{40,}
a Frame.io token | fio-u- | fio-u-[\w=-]{60,}
a ReadMe key | rdme_ | rdme_[a-z0-9]{60,}
a Grafana token | glsa_ | glsa_@{32}_#{8}
a Grafana token | glc_ | glc_[A-Za-z0-9+/=]{32,}
a Grafana key | eyJrIjoi | eyJrIjoi@{60,}
a New Relic key | NRAK- | NRAK-[A-Z0-9]{27}
a New Relic key | NRII- | NRII-~{32}
a Sentry token | sntry | sntry[su]_[A-Za-z0-9+/=_]{40,}
a Dynatrace token | dt0c01. | dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}
a Honeycomb key | hca | hca[a-z]{2}_@{40,}
a LaunchDarkly key | sdk- | sdk-#{8}-#{4}-#{4}-#{4}-#{12}
a Databricks token | dapi | dapi#{32}
a Harness token | pat. | pat\.~{22}\.@{24}\.@{20}
a Postgres-as-a-service key | AVNS_ | AVNS_~{16,}
an Anthropic key | sk-ant- | sk-ant-[a-z]{3,5}\d\d-~{40,}
an OpenRouter key | sk-or- | sk-or-v\d-#{40,}
a model provider's key | sk- | sk-(?=~{0,60}@{16})(?=~{0,48}\d)~{24,}
an ElevenLabs key | sk_ | sk_#{48}(?!@)
a Hugging Face token | hf_ | hf_@{30,}
a Hugging Face token | api_org_ | api_org_@{30,}
a Replicate token | r8_ | r8_@{36,}
a Groq key | gsk_ | gsk_@{40,}
a Perplexity key | pplx- | pplx-@{40,}
an xAI key | xai- | xai-@{60,}
an NVIDIA key | nvapi- | nvapi-~{50,}
a Tavily key | tvly- | tvly-~{24,}
a Cerebras key | csk- | csk-[a-z0-9]{40,}
a Together key | tgp_v1_ | tgp_v1_~{36,}
a Pinecone key | pcsk_ | pcsk_\w{40,}
a LangSmith key | lsv2_ | lsv2_(?:pt|sk)_#{32}_#{10}
a JSON web token | eyJ | eyJ~{14,}\.eyJ~{14,}\.~{20,}
a private key | PRIVATE KEY | -----BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----
a PuTTY key | PuTTY-User | PuTTY-User-Key-File-\d
"""
_ABBREVIATIONS = {"@": "[A-Za-z0-9]", "#": "[0-9a-fA-F]", "~": r"[\w-]"}
_EXAMPLE = re.compile(
    r"(?i)example|placeholder|your[-_]|xxxx|dummy|changeme|1234567890|0123456789|redacted"
    r"|fake|abcdefghij|insert|replace|:(?:password|passwd|secret|postgres)@|<|\*\*\*"
    r"|SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"  # the example of jwt.io
)

_NAMES = ("passw", "passphrase", "secret", "key", "token", "credential")
# A value that a name calls a secret; what it looks like decides.
_NAMED = re.compile(
    r"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|account[_-]?key|(?<!page_)(?<!page)(?<!csrf_)(?<!next_)token|credential)s?"
    r"(?:_(?:key|id|value|prod|live|access|base|base64|hash))?"
    r"[\"'\]]{0,2}\s{0,4}(?:=>|:=|[:=])\s{0,4}"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{10,200})(?P=quote)"
    r"|(?P<bare>[A-Za-z0-9+/=_~.-]{16,200})(?![\w(\[]))"
)
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+]{1,20}://[^\s/:@]{0,100}:([^\s/:@]{6,200})@[\w.-]"
)
_HEADER = re.compile(
    r"(?i)(?:authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4}"
    r"|\s(?:-u|--user)[ =][\"']?[\w.@-]{1,60}:)(?P<value>[A-Za-z0-9._~+/=-]{12,})"
)


class Token:
    """One format of a token: what it is, a text that it holds, and its pattern."""

    def __init__(self, row: str) -> None:
        kind, needle, pattern = row.split("|", 2)
        self.kind, self.needle = kind.strip(), needle.strip()
        self.source = pattern.strip()
        self._pattern: re.Pattern[str] | None = None

    def found_in(self, text: str) -> Iterator[str]:
        """Every text of this format, examples excepted."""
        if self.needle in text:
            for found in self._matches(text):
                if not is_example(found[0]):
                    yield found[0]

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        pattern = self.pattern
        if not self.source.replace("\\", "").startswith(self.needle):
            yield from pattern.finditer(text)
            return
        # Looking for the text first is ten times as fast as searching the pattern.
        at = text.find(self.needle)
        while at >= 0:
            found = pattern.match(text, at)
            if found:
                yield found
            at = text.find(self.needle, found.end() if found else at + 1)

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled on first use: few texts need more than a few."""
        if self._pattern is None:
            escaped = re.sub(r"(\\?)([@#~])", self._abbreviated, self.source)
            self._pattern = re.compile(rf"(?<![A-Za-z0-9]){escaped}")
        return self._pattern

    @staticmethod
    def _abbreviated(found: re.Match[str]) -> str:
        return found[2] if found[1] else _ABBREVIATIONS[found[2]]


TOKENS = [Token(row) for row in _ROWS.strip().splitlines()]


def is_example(text: str) -> bool:
    """Whether a secret is made up: a placeholder, or a few characters repeated."""
    is_word = " " in text or "-----" in text or "PuTTY" in text
    return bool(_EXAMPLE.search(text)) or (not is_word and len(set(text)) < 8)


def secrets_in(text: str) -> Iterator[tuple[str, str]]:
    """Every secret in a text, with what it is."""
    for token in TOKENS:
        for found in token.found_in(text):
            yield token.kind, found
    lowered = text.lower()
    if any(word in lowered for word in _NAMES):
        yield from _named_secrets(text)
    if "://" in text:
        yield from _secrets_in_addresses(text)
    if "authorization" in lowered or "curl" in lowered:
        yield from _secrets_in_headers(text)


def _secrets_in_addresses(text: str) -> Iterator[tuple[str, str]]:
    for found in _ADDRESS.finditer(text):
        if found[1][0] not in "$<{*%" and not is_example(found[0]):
            yield "a password in an address", found[0]


def _secrets_in_headers(text: str) -> Iterator[tuple[str, str]]:
    for found in _HEADER.finditer(text):
        if _is_opaque(found["value"]) and not is_example(found["value"]):
            yield "a credential in a header", found[0]


def _named_secrets(text: str) -> Iterator[tuple[str, str]]:
    for found in _NAMED.finditer(text):
        if found["bare"]:
            # In ``NAME=value`` of a shell nothing but a value can follow.
            is_variable = re.match(r"[A-Z_]+=", found[0]) is not None
            is_secret = (_is_opaque if is_variable else _is_random)(found["bare"])
        else:
            is_secret = _is_password(found["quoted"])
        if is_secret and not is_example(found[0]):
            yield "a password or key", found[0]


def _is_password(value: str) -> bool:
    """Whether a quoted value has letters and digits and is no reference."""
    is_reference = value[0] in "$<{%*@/" or "${" in value or "{{" in value
    return not is_reference and bool(
        re.search(r"\d", value) and re.search("[a-z]", value)
    )


def _is_opaque(value: str) -> bool:
    """Whether a value is longer than a word, mixed and does not repeat itself."""
    longest = max(map(len, re.split(r"[._/-]", value)))
    is_mixed = any(map(str.isdigit, value)) or _changes(value) > 0.4
    return longest > 11 and len(set(value)) > 7 and is_mixed


def _is_random(value: str) -> bool:
    """Whether a bare value is no name, number, path or version."""
    kinds = [_kind_of(char) for char in value]
    if not _is_opaque(value) or len(set(kinds)) < 2:
        return False
    return kinds.count("digit") > 2 or _changes(value) > 0.34


def _changes(value: str) -> float:
    """How often the kind of character changes: in names of several words less often."""
    kinds = [_kind_of(char) for char in value]
    return sum(one != other for one, other in pairwise(kinds)) / len(value)


def _kind_of(char: str) -> str:
    if char.isdigit():
        return "digit"
    return "capital" if char.isupper() else "small" if char.islower() else "other"
