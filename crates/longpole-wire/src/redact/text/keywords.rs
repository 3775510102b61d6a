//! Keywords before or behind which a credential may stand, found by their first bytes.

use crate::redact::token_formats;

/// Those that are looked for in any text, because no sentence has them before such a word.
const SCHEMES_ANYWHERE: &[&str] = &["basic", "bearer", "digest", "negotiate"];

/// Those that a sentence may have, so that what follows has to look like a key.
pub(super) const SCHEMES_OF_KEYS: &[&str] = &["apikey", "aws4-hmac-sha256", "geniekey", "ntlm", "splunk", "ssws", "token", "flyv1"];

/// Addresses whose path is the credential.
const ADDRESSES: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "hooks.slack-gov.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "hooks.zapier.com/hooks/catch/",
    "open.feishu.cn/open-apis/bot/v2/hook/",
    "open.larksuite.com/open-apis/bot/v2/hook/",
    "outlook.office.com/webhook/",
    "outlook.office365.com/webhook/",
    "webhook.office.com/webhookb2/",
    "webhook.office.com/webhook/",
    "events.pagerduty.com/integration/",
    "hooks.glip.com/webhook/",
    "alert.victorops.com/integrations/generic/",
    "hc-ping.com/",
    "hook.eu1.make.com/",
    "hook.eu2.make.com/",
    "hook.us1.make.com/",
    "hook.integromat.com/",
    "api.opsgenie.com/v1/json/integrations/webhooks/",
    "maker.ifttt.com/trigger/",
];

/// The other keywords.
pub(super) const OTHER_KEYWORDS: &[&str] = &[
    "identified",
    "password",
    "passphrase",
    "secret_access_key",
    "config",
    "configure",
    "auth",
    "setuser",
    "values",
    "value",
    "duplicate entry",
    "select",
    "atlasv1",
    "mmk",
    "private-lines",
    "hooks/",
    "webhooks/",
    "failed validating",
    "requirepass",
    "masterauth",
    "proxy_set_header",
    "set-header",
    "bind",
    "oracle:thin:",
    "add-mask::",
    "convertto-securestring",
    "param",
    "args",
];

/// First three bytes of keys that are known by their looks, as bits: one look tells that a word is none.
pub(super) static TOKEN_BEGINNINGS: [u64; 1024] = {
    let mut set = [0; 1024];
    let mut at = 0;
    while at < token_formats::PREFIXES {
        token_formats::add_beginning(&mut set, at);
        at += 1;
    }
    set
};

/// The same of words at which something is looked for.
pub(super) static KEYWORD_BEGINNINGS: [u64; 1024] = {
    let mut set = [0; 1024];
    let lists: [&[&str]; 4] = [SCHEMES_ANYWHERE, SCHEMES_OF_KEYS, ADDRESSES, OTHER_KEYWORDS];
    let mut list = 0;
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            let word = lists[list][at].as_bytes();
            let (a, b, c) = (word[0], word[1], word[2]);
            let (up_a, up_b, up_c) = (a.to_ascii_uppercase(), b.to_ascii_uppercase(), c.to_ascii_uppercase());
            token_formats::add(&mut set, a, b, c);
            token_formats::add(&mut set, up_a, b, c);
            token_formats::add(&mut set, up_a, up_b, up_c);
            at += 1;
        }
        list += 1;
    }
    set
};

/// What is looked for at a word.
#[derive(Clone, Copy)]
pub(super) enum KeywordKind {
    /// What follows it is a credential.
    Scheme,
    /// What follows it is a path, and the credential.
    Address,
    Other,
}

const LISTS: [(KeywordKind, &[&str]); 4] = [
    (KeywordKind::Scheme, SCHEMES_ANYWHERE),
    (KeywordKind::Scheme, SCHEMES_OF_KEYS),
    (KeywordKind::Address, ADDRESSES),
    (KeywordKind::Other, OTHER_KEYWORDS),
];

const KNOWN: usize = SCHEMES_ANYWHERE.len() + SCHEMES_OF_KEYS.len() + ADDRESSES.len() + OTHER_KEYWORDS.len();

/// All of these by their first letter: those of the letter `n` are `BY_LETTER.0[BY_LETTER.1[n]..BY_LETTER.1[n + 1]]`, in the order of the lists.
static BY_LETTER: ([(KeywordKind, &str); KNOWN], [usize; 27]) = {
    let mut words = [(KeywordKind::Other, ""); KNOWN];
    let mut starts = [0; 27];
    let (mut letter, mut next) = (0u8, 0);
    while letter < 26 {
        let mut list = 0;
        while list < LISTS.len() {
            let (kind, of_kind) = LISTS[list];
            let mut at = 0;
            while at < of_kind.len() {
                if of_kind[at].as_bytes()[0] == b'a' + letter {
                    words[next] = (kind, of_kind[at]);
                    next += 1;
                }
                at += 1;
            }
            list += 1;
        }
        letter += 1;
        starts[letter as usize] = next;
    }
    assert!(next == KNOWN, "each begins with a small letter");
    (words, starts)
};

/// Those that begin with this letter.
pub(super) fn keywords(first: u8) -> impl Iterator<Item = (KeywordKind, &'static str)> {
    let letter = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    let range = if letter < 26 { BY_LETTER.1[letter]..BY_LETTER.1[letter + 1] } else { 0..0 };
    BY_LETTER.0[range].iter().copied()
}
