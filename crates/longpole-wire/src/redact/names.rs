//! What a name says of its value: `db.password`, `X-Api-Key`, `GITHUB_TOKEN`.
//!
//! ```text
//! AWSSecretKey_2 ── split ─► aws secret key ── lists below ─► Token: its value is a credential
//! ```

use super::value_forms::{is_bare_key, is_bare_password, is_count, is_key, is_names, is_signature, is_uuid};

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing.
    Plain,
    /// It may hold a credential: the value decides, by looking random.
    Maybe,
    /// A word behind says for what the credential is: `API_KEY_STRIPE`. The value decides, and may not be a host or a name.
    For,
    /// The same of a service or a server that is known: `TOKEN_GITHUB`, `SECRET_DB`. The value may also be one that a person chose.
    ForKnown,
    /// `secret_id`: the password of a role at Vault, a token of Consul and Nomad, all of them UUIDs. At AWS it is the name of a secret.
    SecretId,
    /// A key or token that a machine made. Its name also stands before prose: `token: expired`.
    Token,
    /// The same, or the signature of a function: `method.signature`.
    Signature,
    /// Several tokens, or how many: `tokens`, `secrets`, `api_keys`. Counts stay, and so do names of secrets: `secrets: [db-login]`.
    Tokens,
    /// A password: whatever stands there.
    Password,
    /// `pass`: a password, except for numbers and for what test runners print.
    Pass,
    /// `PWD`: a password, except for the working directory.
    Pwd,
    /// The header: a scheme and what follows it.
    Authorization,
    /// The header: pairs.
    Cookie,
    /// The header: pairs, some of them harmless.
    SetCookie,
}

impl Meaning {
    /// What a name says below or beside another one: that counts if it says more than where to look.
    pub(super) fn or(self, own: Meaning) -> Meaning {
        if self.is_sure() { self } else { own }
    }

    /// Whether a value that stands alone is a credential if its name says this, and it is not [nothing](super::value_forms::is_nothing).
    pub(super) fn is_of(self, value: &str) -> bool {
        let is_number = || value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match self {
            Meaning::Plain => false,
            Meaning::Maybe => is_key(value),
            Meaning::For => is_bare_key(value),
            Meaning::ForKnown => is_bare_key(value) || is_bare_password(value),
            Meaning::SecretId => is_uuid(value),
            Meaning::Pass => !is_number(),
            Meaning::Pwd => !value.starts_with(['/', '~']),
            Meaning::Token => !(value.len() <= 5 && is_number()),
            Meaning::Signature => !(is_signature(value) || value.len() <= 5 && is_number()),
            Meaning::Tokens => !is_count(value) && !is_names(value),
            Meaning::Password | Meaning::Authorization | Meaning::Cookie | Meaning::SetCookie => true,
        }
    }

    /// Whether the value is a credential whatever it looks like, except for counts, messages and the like.
    pub(super) fn is_sure(self) -> bool {
        !matches!(self, Meaning::Plain | Meaning::Maybe | Meaning::For | Meaning::ForKnown | Meaning::SecretId)
    }
}

/// A longer name is judged by its end, where the word that matters stands.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// Words of a name that are judged, from its end.
const WORDS_MAX: usize = 24;

/// Words that make a name one of a password wherever they stand in it.
const ANYWHERE: &[&str] =
    &["password", "passwords", "passwd", "passphrase", "passphrases", "passcode", "pwd", "credential", "credentials", "creds"];

/// Behind one of [`ANYWHERE`], last words that say something about the password instead of what it is.
const ABOUT: &[&str] = &[
    "age",
    "algorithm",
    "at",
    "attempts",
    "changed",
    "count",
    "created",
    "enabled",
    "encoding",
    "endpoint",
    "error",
    "expired",
    "expires",
    "expiry",
    "file",
    "format",
    "helper",
    "id",
    "length",
    "len",
    "manager",
    "method",
    "mode",
    "name",
    "needed",
    "path",
    "policy",
    "provider",
    "required",
    "reset",
    "retries",
    "rotation",
    "size",
    "source",
    "state",
    "status",
    "stdin",
    "store",
    "strength",
    "ttl",
    "type",
    "updated",
    "username",
    "version",
];

/// Ends of the last word that make a name one of a password.
const LAST_PASSWORD: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "dbpass",
    "userpass",
    "rootpass",
    "adminpass",
    "sqlpass",
    "pgpass",
    "mypass",
    "smtppass",
    "storepass",
    "keypass",
    "authpass",
    "privpass",
    "requirepass",
    "masterauth",
    "ftppass",
    "httppass",
    "passcodes",
    "passwords",
    "passphrases",
    // German, Dutch, Swedish, Danish and Norwegian, Finnish.
    "passwort",
    "kennwort",
    "wachtwoord",
    "lösenord",
    "adgangskode",
    "passord",
    "salasana",
    // French, Spanish, Portuguese, Polish, Czech.
    "motdepasse",
    "contraseña",
    "contrasen\u{303}a",
    "contraseÑa",
    "contrasena",
    "senha",
    "hasło",
    "hasŁo",
    "heslo",
    // Russian and Ukrainian; only letters of English are put in lower case.
    "пароль",
    "Пароль",
    "ПАРОЛЬ",
    // Chinese, Japanese, Korean.
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "암호",
];

/// Words before `pass` and `pw` that make one word with it, which is a password.
const OF_PASS: &[&str] = &[
    "admin", "bind", "db", "ftp", "http", "imap", "ldap", "mail", "master", "mongo", "mqtt", "mysql", "pg", "proxy", "redis", "root",
    "smb", "smtp", "sql", "ssh", "sudo", "user", "vnc", "vpn", "wifi", "wlan",
];

/// Words of English and of programs that end with `pass` or `pw` and have nothing to do with passwords.
const NO_PASS: &[&str] = &[
    "allpass",
    "backpass",
    "bandpass",
    "bypass",
    "compass",
    "encompass",
    "highpass",
    "lowpass",
    "multipass",
    "overpass",
    "prepass",
    "renderpass",
    "subpass",
    "surpass",
    "trespass",
    "underpass",
];

/// What a last word says that ends with `pass` or `pw`: `SSHPASS`, `bindpw`. Others than the known ones count if the whole name is in
/// capitals, as that of a variable of the environment.
fn pass(name: &[u8], last: &str) -> Option<Meaning> {
    let before = last.strip_suffix("pass").or_else(|| last.strip_suffix("pw"))?;
    if OF_PASS.contains(&before) {
        return Some(Meaning::Pass);
    }
    let is_variable = before.len() > 1 && !NO_PASS.contains(&last) && !name.iter().any(u8::is_ascii_lowercase);
    is_variable.then_some(Meaning::Pass)
}

/// Ends of the last word that make it one of a token.
const LAST_TOKEN: &[&str] = &[
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "connectionstring",
    "dsn",
    "jwt",
    "authkey",
    "licensekey",
    "passkey",
    "sessionid",
    "sessid",
    "samlresponse",
    "密钥",
    "密鑰",
    "令牌",
    "トークン",
    "토큰",
];

/// Last words, whole, that do.
const LAST_TOKEN_WHOLE: &[&str] = &["sig", "hmac", "totp", "psk"];

/// The last two words that do.
const LAST_TWO: &[(&str, &str)] = &[
    ("access", "key"),
    ("aes", "key"),
    ("account", "key"),
    ("admin", "key"),
    ("api", "key"),
    ("app", "key"),
    ("application", "key"),
    ("auth", "key"),
    ("backup", "code"),
    ("client", "assertion"),
    ("code", "verifier"),
    ("connection", "string"),
    ("crypto", "key"),
    ("decryption", "key"),
    ("deploy", "key"),
    ("encryption", "key"),
    ("fernet", "key"),
    ("functions", "key"),
    ("gitlab", "session"),
    ("hmac", "key"),
    ("honeycomb", "team"),
    ("ingest", "key"),
    ("ingestion", "key"),
    ("integration", "key"),
    ("jwt", "key"),
    ("key", "base"),
    ("key", "data"),
    ("license", "key"),
    ("master", "key"),
    ("private", "key"),
    ("recovery", "code"),
    ("recovery", "key"),
    ("root", "key"),
    ("saml", "response"),
    ("secret", "binary"),
    ("secret", "key"),
    ("secret", "string"),
    ("service", "key"),
    ("shared", "key"),
    ("signing", "key"),
    ("ssh", "key"),
    ("storage", "key"),
    ("subscription", "key"),
    ("unseal", "key"),
    ("write", "key"),
    ("x", "auth"),
];

/// The last two words that sound like a token and are none: pages, parsers, language models.
const HARMLESS_TWO: &[(&str, &str)] = &[
    ("bos", "token"),
    ("cancellation", "token"),
    ("continuation", "token"),
    ("eos", "token"),
    ("mask", "token"),
    ("next", "token"),
    ("pad", "token"),
    ("page", "token"),
    ("pull", "secret"),
    ("schema", "token"),
    ("stop", "token"),
    ("sync", "token"),
    ("unexpected", "token"),
    ("unk", "token"),
];

/// Words before `tokens` where language models count them.
const COUNTED: &[&str] = &["cached", "completion", "input", "max", "min", "output", "prompt", "reasoning", "total", "usage", "used"];

/// Last words whose value may be a credential, if it looks random.
const LAST_MAYBE: &[&str] = &["auth", "pat", "webhook", "jsessionid", "phpsessid", "bearer", "assertion", "otp", "apitoken", "hook"];

/// The last two words that do so: where a webhook is, and where SonarQube took a token up to version 10.
const MAYBE_TWO: &[(&str, &str)] = &[("webhook", "url"), ("webhook", "uri"), ("sonar", "login")];

/// Services whose random value under `…_KEY` or the bare name is a credential.
const SERVICES: &[&str] = &[
    "adafruit",
    "adobe",
    "airtable",
    "algolia",
    "alibaba",
    "anthropic",
    "artifactory",
    "asana",
    "atlassian",
    "beamer",
    "bintray",
    "bitbucket",
    "bittrex",
    "bugsnag",
    "circleci",
    "cloudflare",
    "codecov",
    "cohere",
    "coinbase",
    "confluent",
    "contentful",
    "datadog",
    "dd",
    "deepgram",
    "digitalocean",
    "discord",
    "droneci",
    "dropbox",
    "elevenlabs",
    "etsy",
    "facebook",
    "fastly",
    "finicity",
    "finnhub",
    "flickr",
    "freshbooks",
    "github",
    "gitlab",
    "gitter",
    "gocardless",
    "grafana",
    "heroku",
    "honeycomb",
    "hubspot",
    "intercom",
    "jfrog",
    "jira",
    "kraken",
    "kucoin",
    "launchdarkly",
    "linear",
    "linkedin",
    "lob",
    "looker",
    "mailchimp",
    "mailgun",
    "mapbox",
    "mattermost",
    "meraki",
    "messagebird",
    "mistral",
    "netlify",
    "newrelic",
    "notion",
    "nytimes",
    "okta",
    "openai",
    "openweathermap",
    "pagerduty",
    "plaid",
    "postmark",
    "privateai",
    "rapidapi",
    "rollbar",
    "sendbird",
    "sentry",
    "shodan",
    "slack",
    "snyk",
    "sonar",
    "square",
    "squarespace",
    "stripe",
    "sumo",
    "sumologic",
    "telegram",
    "travis",
    "trello",
    "twilio",
    "twitch",
    "twitter",
    "typeform",
    "virustotal",
    "vultr",
    "wandb",
    "yandex",
    "zendesk",
];

/// Servers and users for which a credential may be, besides [`SERVICES`]: `SECRET_DB`, `PASS_ROOT`.
const OWNERS: &[&str] = &[
    "admin",
    "aws",
    "azure",
    "database",
    "db",
    "docker",
    "gcp",
    "kafka",
    "ldap",
    "mongo",
    "mongodb",
    "mysql",
    "npm",
    "postgres",
    "postgresql",
    "pypi",
    "rabbitmq",
    "redis",
    "root",
    "smtp",
    "vault",
    "vpn",
];

/// Words that make a key one of a credential, also behind it: `KEY_API`. Others are properties of a key there: `key.account`.
const KEY_OF: &[&str] =
    &["access", "aes", "api", "auth", "crypto", "decryption", "encryption", "fernet", "hmac", "jwt", "license", "private", "signing"];

/// Words behind the one that matters that say only how or where the credential is written.
const SPELLINGS: &[&str] = &[
    "value",
    "text",
    "plain",
    "base64",
    "b64",
    "raw",
    "env",
    "header",
    "hex",
    "prod",
    "production",
    "dev",
    "staging",
    "live",
    "primary",
    "secondary",
    "old",
    "new",
    "current",
    "previous",
    "v",
    "ro",
    "rw",
    "read",
    "write",
];

/// Behind the name of a token, last words that say that the value is not the token, besides those of [`ABOUT`].
#[rustfmt::skip]
const BESIDE: &[&str] = &[
    "account", "alg", "arn", "audience", "bucket", "client", "digest", "fingerprint", "hash", "header", "issuer", "kid", "namespace",
    "project", "prefix", "region", "role", "scope", "subject", "tenant", "uri", "url", "user", "username", "uuid",
];

/// The name in lower case, and where its words end: `AWSSecretKey_2` is `aws`, `secret`, `key`.
struct Words {
    letters: [u8; NAME_BYTES_MAX],
    ranges: [(u16, u16); WORDS_MAX],
    count: usize,
}

const _: () = assert!(NAME_BYTES_MAX <= u16::MAX as usize);

/// A range inside of a name, in half the bytes.
#[expect(clippy::cast_possible_truncation, reason = "no name is longer than NAME_BYTES_MAX")]
fn short(range: std::ops::Range<usize>) -> (u16, u16) {
    (range.start as u16, range.end as u16)
}

impl Words {
    /// Words from the end backwards: the last one is number 0. Words of digits say nothing, nor do digits at a word's end.
    fn of(name: &[u8]) -> Self {
        let name = &name[name.len().saturating_sub(NAME_BYTES_MAX)..];
        let mut words = Words { letters: [0; NAME_BYTES_MAX], ranges: [(0, 0); WORDS_MAX], count: 0 };
        for (letter, byte) in words.letters.iter_mut().zip(name) {
            *letter = byte.to_ascii_lowercase();
        }
        let is_letter = |at: usize| name[at].is_ascii_alphanumeric() || name[at] >= 0x80;
        let mut end = name.len();
        while end > 0 && words.count < WORDS_MAX {
            if !is_letter(end - 1) {
                end -= 1;
                continue;
            }
            let mut start = end - 1;
            while start > 0 && is_letter(start - 1) && !begins(name, start) {
                start -= 1;
            }
            let digits = name[start..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            // `base64` and `b64` are words; `password2` is `password`.
            let kept = if matches!(&words.letters[start..end], b"base64" | b"b64") { end } else { end - digits };
            if kept > start {
                words.ranges[words.count] = short(start..kept);
                words.count += 1;
            }
            end = start;
        }
        words
    }

    fn get(&self, from_end: usize) -> &str {
        if from_end >= self.count {
            return "";
        }
        let (start, end) = self.ranges[from_end];
        // Cut inside of a character, it is no word of ours.
        std::str::from_utf8(&self.letters[usize::from(start)..usize::from(end)]).unwrap_or("")
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        (0..self.count).map(|from_end| self.get(from_end))
    }
}

/// Whether a word begins here by its capital: `db|Password`, `AWS|Secret`.
fn begins(name: &[u8], at: usize) -> bool {
    let (before, here) = (name[at - 1], name[at]);
    if !here.is_ascii_uppercase() {
        return false;
    }
    let next_is_lower = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    before.is_ascii_lowercase() || before.is_ascii_digit() || before.is_ascii_uppercase() && next_is_lower
}

/// What a name says of its value.
pub(super) fn meaning(name: &str) -> Meaning {
    let words = Words::of(name.as_bytes());
    let mut skip = 0;
    while skip < words.count && SPELLINGS.contains(&words.get(skip)) {
        skip += 1;
    }
    let (last, before) = (words.get(skip), words.get(skip + 1));
    if matches!(last, "pwd" | "oldpwd") && matches!(before, "" | "env" | "environ" | "environment") {
        return Meaning::Pwd;
    }
    if words.all().any(|word| ANYWHERE.contains(&word)) && !ABOUT.contains(&last) || LAST_PASSWORD.iter().any(|end| last.ends_with(end)) {
        return Meaning::Password;
    }
    // npm has it in `.npmrc` and in its settings: `//r.example/:_auth`.
    if name.ends_with("_auth") && name[..name.len() - "_auth".len()].bytes().next_back().is_none_or(|before| before == b':') {
        return Meaning::Token;
    }
    match last {
        "" => return Meaning::Plain,
        // The end of an HTTP name: `authorization.value`, `proxy-authorization`.
        _ if last.ends_with("authorization") => return Meaning::Authorization,
        "cookie" | "cookies" if before == "set" => return Meaning::SetCookie,
        "cookie" | "cookies" => return Meaning::Cookie,
        "id" if before == "secret" => return Meaning::SecretId,
        "passe" if before == "de" => return Meaning::Password,
        "pw" if words.count > skip + 1 => return Meaning::Password,
        "pass" => return if words.count > skip + 1 { Meaning::Password } else { Meaning::Pass },
        _ => {
            if let Some(meaning) = pass(name.as_bytes(), last) {
                return meaning;
            }
        }
    }
    let many = last.strip_suffix('s').filter(|one| ["token", "secret", "key", "code"].iter().any(|end| one.ends_with(end)));
    let one = many.unwrap_or(last);
    if HARMLESS_TWO.contains(&(before, one)) || many.is_some() && COUNTED.contains(&before) {
        return Meaning::Plain;
    }
    if last.ends_with("signature") {
        return Meaning::Signature;
    }
    let is_token = |last: &str, before: &str| {
        LAST_TOKEN.iter().any(|end| last.ends_with(end)) || LAST_TWO.iter().any(|(a, b)| last == *b && before.ends_with(a))
    };
    if is_token(one, before) || last.ends_with("cookie") || LAST_TOKEN_WHOLE.contains(&last) {
        return if many.is_some() { Meaning::Tokens } else { Meaning::Token };
    }
    // `fs.azure.account.key.shop.dfs.core.windows.net`: the account stands behind.
    if name.contains("azure.account.key.") {
        return Meaning::Token;
    }
    let of_service = || words.all().any(|word| SERVICES.contains(&word));
    let key = matches!(last, "key" | "keys") && of_service();
    // The bare name only as an environment variable writes it.
    let bare = words.count == 1 && of_service() && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_known = SERVICES.contains(&last) || OWNERS.contains(&last);
    if is_known && before == "pass" {
        return Meaning::Pass;
    }
    if is_known && is_token(before, words.get(skip + 2)) {
        return Meaning::ForKnown;
    }
    if before == "key" && (SERVICES.contains(&last) || KEY_OF.contains(&last)) {
        return Meaning::For;
    }
    // A name in capitals is that of a variable. Elsewhere the last word is a property of the token.
    let is_for = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_for && !ABOUT.contains(&last) && !BESIDE.contains(&last) && (before == "pass" || is_token(before, words.get(skip + 2))) {
        return Meaning::For;
    }
    if LAST_MAYBE.contains(&last) || key || bare || MAYBE_TWO.iter().any(|(a, b)| last == *b && before.ends_with(a)) {
        Meaning::Maybe
    } else {
        Meaning::Plain
    }
}
