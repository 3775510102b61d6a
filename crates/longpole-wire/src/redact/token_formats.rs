//! Formats of tokens: credentials that are known by how they look, because services put a prefix before them, so that they are found when
//! they leak.
//!
//! ```text
//! ghp_ 0123456789abcdefghijABCDEFGHIJ012345
//! └──┘ └──────────── at least 36 letters and digits ─┘
//! ```
//!
//! The formats are facts that the services publish, or that anybody sees who holds such a key. Which services there are was checked
//! against the rules of gitleaks 8 (`docs/decisions/0019-what-a-credential-looks-like.md`); no rule was copied.

use std::ops::{Range, RangeInclusive};

use super::bytes::position;
use super::lookahead::Lookahead;
use super::step_budget::StepBudget;

/// What stands behind a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Letters and digits.
    Alnum,
    /// Hexadecimal digits.
    Hex,
    /// Hexadecimal digits and the dashes of a UUID.
    Uuid,
    /// Capitals and digits.
    Upper,
    /// Base64 for URLs: letters, digits, `-`, `_`.
    Url,
    /// Base64: letters, digits, `+`, `/`, `=`, and `-`, `_`.
    Base64,
    /// All of these and `.`: parts with dots between them.
    Dotted,
}

impl Tail {
    fn holds(self, byte: u8) -> bool {
        match self {
            Tail::Alnum => byte.is_ascii_alphanumeric(),
            Tail::Hex => byte.is_ascii_hexdigit(),
            Tail::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
            Tail::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Tail::Url => byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_',
            Tail::Base64 => byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte),
            Tail::Dotted => byte.is_ascii_alphanumeric() || b"-_+/=.".contains(&byte),
        }
    }
}

/// How sure a prefix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    /// Nobody else writes it.
    Yes,
    /// A word could begin like it: the tail has a digit and a letter.
    Mixed,
    /// A word could begin like it: the tail has exactly this length, a digit and a letter.
    Exact,
}

/// A kind of token: prefix, alphabet and least length of what stands behind it.
struct Token(&'static str, Tail, usize, Sure);

use Sure::{Exact, Mixed, Yes};
use Tail::{Alnum, Base64, Dotted, Hex, Upper, Url, Uuid};

#[rustfmt::skip]
const TOKENS: &[Token] = &[
    // Seen before the table is.
    Token("eyJ", Dotted, usize::MAX, Yes), Token("LS0tLS1CRUdJTi", Base64, usize::MAX, Yes), Token("pat", Alnum, usize::MAX, Yes),
    Token("bot", Alnum, usize::MAX, Yes), Token("sat", Alnum, usize::MAX, Yes), Token("MT", Alnum, usize::MAX, Yes),
    Token("Mj", Alnum, usize::MAX, Yes), Token("Mz", Alnum, usize::MAX, Yes), Token("ND", Alnum, usize::MAX, Yes),
    Token("NT", Alnum, usize::MAX, Yes), Token("Nj", Alnum, usize::MAX, Yes), Token("Nz", Alnum, usize::MAX, Yes),
    Token("OD", Alnum, usize::MAX, Yes), Token("OT", Alnum, usize::MAX, Yes), Token("sc_", Alnum, usize::MAX, Yes),
    Token("ext_", Alnum, usize::MAX, Yes), Token("scauth_", Alnum, usize::MAX, Yes), Token("authress_", Alnum, usize::MAX, Yes),
    // Clouds.
    Token("AKIA", Upper, 16, Yes), Token("ASIA", Upper, 16, Exact), Token("ABIA", Upper, 16, Exact), Token("ACCA", Upper, 16, Exact),
    Token("A3T", Upper, 17, Exact), Token("ABSK", Base64, 100, Yes), Token("bedrock-api-key-", Base64, 20, Yes),
    Token("AIza", Url, 31, Yes), Token("ya29.", Dotted, 20, Yes), Token("GOCSPX-", Url, 20, Yes), Token("1//0", Url, 30, Mixed),
    Token("LTAI", Alnum, 12, Mixed), Token("AKID", Alnum, 28, Mixed), Token("dop_v1_", Hex, 32, Yes), Token("doo_v1_", Hex, 32, Yes),
    Token("dor_v1_", Hex, 32, Yes), Token("DO00", Upper, 16, Exact), Token("HRKU-", Url, 30, Yes), Token("AVNS_", Url, 16, Yes),
    Token("AQVN", Url, 35, Mixed), Token("YC", Url, 38, Exact), Token("t1.", Dotted, 90, Mixed), Token("fo1_", Url, 40, Yes), Token("fm1r_", Base64, 60, Yes),
    Token("fm1a_", Base64, 60, Yes), Token("fm2_", Base64, 60, Yes), Token("tk-us-", Url, 40, Yes), Token("pscale_", Dotted, 32, Yes),
    Token("sbp_", Hex, 40, Yes), Token("sb_secret_", Url, 20, Yes), Token("rnd_", Alnum, 28, Mixed), Token("napi_", Alnum, 40, Yes),
    Token("nfp_", Alnum, 36, Yes), Token("v1.0-", Url, 100, Yes), Token("dnkey-", Url, 60, Yes), Token("tskey-", Url, 20, Yes),
    Token("SWMTKN-1-", Url, 40, Yes), Token("sha256~", Url, 40, Yes), Token("vcp_", Alnum, 24, Mixed), Token("vca_", Alnum, 24, Mixed),
    Token("vci_", Alnum, 24, Mixed), Token("vck_", Alnum, 24, Mixed), Token("vcr_", Alnum, 24, Mixed), Token("vercel_blob_rw_", Url, 30, Yes),
    Token("cfut_", Alnum, 40, Yes), Token("cfat_", Alnum, 40, Yes), Token("cfk_", Alnum, 40, Yes),
    // Code and builds.
    Token("ghp_", Alnum, 16, Yes), Token("gho_", Alnum, 16, Yes), Token("ghs_", Alnum, 16, Yes), Token("ghu_", Alnum, 16, Yes),
    Token("ghr_", Alnum, 16, Yes), Token("github_pat_", Url, 19, Yes), Token("glpat-", Dotted, 14, Yes), Token("gldt-", Url, 20, Yes),
    Token("glcbt-", Url, 20, Yes), Token("glffct-", Url, 20, Yes), Token("glft-", Url, 20, Yes), Token("glimt-", Url, 20, Yes),
    Token("glagent-", Url, 40, Yes), Token("gloas-", Url, 40, Yes), Token("glptt-", Hex, 40, Yes), Token("GR1348941", Url, 20, Yes),
    Token("glrt-", Dotted, 20, Yes), Token("glrtr-", Url, 20, Yes), Token("glsoat-", Url, 20, Yes), Token("ATBB", Alnum, 28, Mixed),
    Token("ATATT3", Base64, 60, Yes), Token("ATCTT3", Base64, 60, Yes), Token("ATTA", Hex, 60, Mixed), Token("npm_", Alnum, 36, Yes),
    Token("pypi-", Url, 35, Mixed), Token("rubygems_", Hex, 48, Yes), Token("cio", Alnum, 32, Exact), Token("CLOJARS_", Alnum, 50, Yes),
    Token("oy2", Alnum, 43, Exact), Token("dckr_pat_", Url, 20, Yes), Token("dckr_oat_", Url, 20, Yes), Token("AKCp", Alnum, 60, Yes),
    Token("cmVmd", Alnum, 59, Exact), Token("CCIPAT_", Url, 40, Yes), Token("CCIPRJ_", Url, 40, Yes), Token("bkua_", Alnum, 36, Yes),
    Token("sgp_", Url, 40, Mixed), Token("squ_", Alnum, 40, Yes), Token("sqp_", Alnum, 40, Yes), Token("sqa_", Alnum, 40, Yes),
    Token("pul-", Hex, 36, Yes), Token("API-", Upper, 26, Exact), Token("pnu_", Alnum, 36, Yes), Token("PMAK-", Url, 40, Yes),
    Token("PMAT-", Url, 20, Mixed), Token("rdme_", Alnum, 60, Yes), Token("figd_", Url, 36, Yes), Token("lin_api_", Alnum, 32, Yes),
    Token("lin_oauth_", Alnum, 32, Yes), Token("ntn_", Alnum, 40, Yes), Token("secret_", Alnum, 43, Exact), Token("ico-", Alnum, 32, Exact),
    // Secrets of machines.
    Token("hvs.", Url, 20, Yes), Token("hvb.", Url, 60, Yes), Token("hvr.", Url, 20, Yes), Token("s.", Alnum, 24, Exact),
    Token("dp.pt.", Alnum, 40, Yes), Token("dp.st.", Dotted, 40, Yes), Token("dp.ct.", Alnum, 40, Yes), Token("dp.sa.", Alnum, 40, Yes),
    Token("dp.scim.", Alnum, 40, Yes), Token("dp.audit.", Alnum, 40, Yes), Token("ops_eyJ", Base64, 60, Yes), Token("A3-", Url, 33, Mixed),
    Token("AGE-SECRET-KEY-1", Upper, 50, Yes), Token("AGE-PLUGIN-", Url, 40, Mixed),
    Token("mdb_sa_sk_", Url, 20, Yes), Token("dbtc_", Alnum, 30, Mixed), Token("dbtu_", Alnum, 30, Mixed), Token("snyk_uat.", Dotted, 40, Yes),
    Token("snyk_sat.", Dotted, 40, Yes), Token("ZXlK", Alnum, 60, Mixed),
    // Watching.
    Token("glc_", Base64, 32, Yes), Token("glsa_", Url, 40, Yes), Token("eyJrIjoi", Base64, 60, Yes), Token("dt0c01.", Dotted, 60, Yes),
    Token("dt0s01.", Dotted, 60, Yes), Token("dt0s16.", Dotted, 60, Yes), Token("NRAK-", Alnum, 27, Yes), Token("NRII-", Url, 32, Yes),
    Token("NRJS-", Alnum, 19, Yes), Token("NRRA-", Hex, 40, Yes), Token("sntrys_", Base64, 40, Yes), Token("sntryu_", Hex, 60, Yes),
    Token("phx_", Alnum, 40, Yes), Token("hcaik_", Alnum, 50, Yes), Token("hcxik_", Alnum, 50, Yes), Token("xaat-", Url, 32, Yes),
    Token("xapt-", Url, 32, Yes), Token("dapi", Hex, 32, Exact), Token("dose", Hex, 32, Exact), Token("dkea", Hex, 32, Exact),
    Token("lsv2_", Url, 40, Yes), Token("essu_", Alnum, 40, Mixed),
    // Models.
    Token("sk-ant-", Url, 30, Yes), Token("sk-proj-", Url, 30, Yes), Token("sk-svcacct-", Url, 30, Yes), Token("sk-admin-", Url, 30, Yes),
    Token("sk-or-v1-", Hex, 40, Yes), Token("sk-", Alnum, 20, Mixed), Token("sk-lf-", Url, 30, Yes), Token("hf_", Alnum, 34, Yes), Token("hf_", Alnum, 30, Mixed),
    Token("api_org_", Alnum, 34, Yes),
    Token("gsk_", Alnum, 40, Yes), Token("xai-", Alnum, 60, Yes), Token("r8_", Alnum, 37, Exact), Token("pplx-", Alnum, 40, Yes),
    Token("tvly-", Url, 28, Mixed), Token("pcsk_", Url, 40, Yes), Token("nvapi-", Url, 50, Yes), Token("jina_", Url, 50, Yes),
    Token("sk_", Hex, 48, Exact), Token("4b1d", Alnum, 38, Exact),
    Token("tgp_v1_", Url, 30, Yes), Token("csk-", Alnum, 40, Mixed), Token("rpa_", Alnum, 36, Mixed), Token("fc-", Hex, 32, Exact),
    Token("wandb_v1_", Alnum, 40, Yes), Token("e2b_", Hex, 40, Yes),
    // Money and shops.
    Token("sk_live_", Alnum, 10, Yes), Token("sk_test_", Alnum, 10, Yes), Token("sk_prod_", Alnum, 10, Yes), Token("rk_live_", Alnum, 10, Yes),
    Token("rk_test_", Alnum, 10, Yes), Token("rk_prod_", Alnum, 10, Yes), Token("whsec_", Base64, 24, Yes), Token("sq0atp-", Url, 22, Yes),
    Token("sq0csp-", Url, 40, Yes), Token("EAAA", Url, 56, Mixed), Token("shpat_", Hex, 32, Yes), Token("shpca_", Hex, 32, Yes),
    Token("shppa_", Hex, 32, Yes), Token("shpss_", Hex, 32, Yes), Token("shippo_live_", Hex, 36, Yes), Token("shippo_test_", Hex, 36, Yes),
    Token("rzp_live_", Alnum, 14, Yes), Token("rzp_test_", Alnum, 14, Yes), Token("EZAK", Alnum, 54, Yes), Token("EZTK", Alnum, 54, Yes),
    Token("FLWSECK_TEST-", Url, 12, Yes), Token("FLWSECK-", Url, 20, Yes), Token("duffel_live_", Base64, 40, Yes),
    Token("duffel_test_", Base64, 40, Yes), Token("access-production-", Url, 36, Yes), Token("access-development-", Url, 36, Yes),
    Token("access-sandbox-", Url, 36, Yes), Token("live_", Hex, 35, Exact), Token("test_", Hex, 35, Exact),
    Token("live_", Alnum, 30, Exact), Token("test_", Alnum, 30, Exact), Token("live_", Base64, 40, Exact), Token("live_pub_", Hex, 31, Exact),
    Token("test_pub_", Hex, 31, Exact), Token("APP_USR-", Url, 40, Mixed), Token("TEST-", Uuid, 60, Mixed),
    Token("xnd_production_", Alnum, 40, Yes), Token("xnd_development_", Alnum, 40, Yes),
    Token("access_token$production$", Dotted, 20, Yes),
    // Messages.
    Token("xoxa-", Url, 15, Yes), Token("xoxb-", Url, 15, Yes), Token("xoxc-", Url, 15, Yes), Token("xoxd-", Base64, 15, Yes), Token("xoxe-", Url, 15, Yes),
    Token("xoxo-", Url, 15, Mixed),
    Token("xoxp-", Url, 15, Yes), Token("xoxr-", Url, 15, Yes), Token("xoxs-", Url, 15, Yes), Token("xoxe.xox", Dotted, 20, Yes),
    Token("xapp-", Url, 20, Yes), Token("xkeysib-", Url, 60, Yes), Token("xsmtpsib-", Url, 60, Yes), Token("SG.", Dotted, 37, Mixed),
    Token("key-", Hex, 32, Exact), Token("SK", Hex, 32, Exact), Token("re_", Url, 30, Mixed), Token("mfa.", Url, 60, Mixed),
    Token("tfp_", Dotted, 50, Yes), Token("EAA", Alnum, 90, Mixed), Token("IGQV", Url, 60, Mixed), Token("IGAA", Alnum, 90, Mixed),
    Token("AAAAAAAAAAAAAAAAAAAAA", Alnum, 40, Mixed), Token("fio-u-", Base64, 60, Yes), Token("CFPAT-", Url, 40, Yes),
    Token("sl.", Url, 120, Mixed), Token("pat-na1-", Url, 36, Yes), Token("pat-eu1-", Url, 36, Yes), Token("sdk-", Hex, 32, Exact),
    Token("sdk-", Uuid, 36, Exact), Token("mob-", Uuid, 36, Exact), Token("api-", Uuid, 36, Exact), Token("endr+", Alnum, 16, Exact),
    Token("s-s4t2ud-", Hex, 64, Yes), Token("s-s4t2af-", Hex, 64, Yes),
    Token("aio_", Alnum, 28, Exact), Token("p8e-", Alnum, 32, Exact), Token("BBFF-", Alnum, 30, Yes), Token("sm_aat_", Alnum, 16, Yes),
    Token("sm_pat_", Alnum, 16, Yes), Token("sm_sat_", Alnum, 16, Yes), Token("sk.eyJ", Dotted, 40, Yes), Token("CMCREST_", Alnum, 60, Yes),
    Token("v4.local.", Url, 40, Yes), Token("v3.local.", Url, 40, Yes), Token("zpka_", Url, 40, Yes), Token("fly_", Url, 40, Mixed),
    Token("b_", Url, 44, Exact), Token("scw_", Url, 40, Mixed), Token("oauth:", Alnum, 30, Exact),
];

const _: () = assert!(PREFIXES <= u16::MAX as usize);

/// Formats by their first byte: those of `byte` are `ORDER[STARTS[byte]..STARTS[byte + 1]]`, in the order of the table.
#[expect(clippy::cast_possible_truncation, reason = "there are no more formats than PREFIXES")]
static ORDER: [u16; PREFIXES] = {
    let mut order = [0; PREFIXES];
    let (mut byte, mut next) = (0, 0);
    while byte < 256 {
        let mut at = 0;
        while at < PREFIXES {
            if TOKENS[at].0.as_bytes()[0] as usize == byte {
                order[next] = at as u16;
                next += 1;
            }
            at += 1;
        }
        byte += 1;
    }
    order
};

static STARTS: [u16; 257] = {
    let mut starts = [0; 257];
    let mut byte = 0;
    while byte < 256 {
        let (mut at, mut count) = (0, 0);
        while at < PREFIXES {
            count += (TOKENS[at].0.as_bytes()[0] as usize == byte) as u16;
            at += 1;
        }
        starts[byte + 1] = starts[byte] + count;
        byte += 1;
    }
    starts
};

/// Parts of a key that stand inside of it, where they begin, and how long all of it is.
#[rustfmt::skip]
const INSIDE: &[(&str, usize, Range<usize>)] = &[
    // Client secrets of Azure, its DevOps, functions, search, storage; Terraform Cloud; MaxMind.
    ("Q~", 4, 37..41), ("AZDO", 76, 84..85), ("AzFu", 44, 56..57), ("AzSe", 42, 52..53), ("+ASt", 76, 88..89), (".atlasv1.", 14, 80..110),
    ("_mmk", 36, 40..41),
];

/// How many formats there are.
pub(super) const PREFIXES: usize = TOKENS.len();

/// Notes that words may begin with these bytes.
pub(super) const fn add(set: &mut [u64; 1024], a: u8, b: u8, c: u8) {
    let bit = hash(a, b, c);
    set[bit >> 6] |= 1 << (bit & 63);
}

/// Whether words may begin with these bytes; seldom wrong where they do not.
pub(super) fn has(set: &[u64; 1024], a: u8, b: u8, c: u8) -> bool {
    let bit = hash(a, b, c);
    set[bit >> 6] & 1 << (bit & 63) != 0
}

const fn hash(a: u8, b: u8, c: u8) -> usize {
    ((a as usize) << 10 ^ (b as usize) << 5 ^ c as usize) & 0xffff
}

/// Notes how this format begins.
pub(super) const fn add_beginning(set: &mut [u64; 1024], format: usize) {
    let prefix = TOKENS[format].0.as_bytes();
    if prefix.len() > 2 {
        return add(set, prefix[0], prefix[1], prefix[2]);
    }
    let mut third = 0;
    loop {
        add(set, prefix[0], prefix[1], third);
        if third == u8::MAX {
            return;
        }
        third += 1;
    }
}

/// No token is shorter.
pub(super) const TOKEN_BYTES_MIN: usize = 16;

/// Segments of a JSON Web Token longer than this are none.
const JWT_HEADER_MAX: usize = 4096;

fn run(bytes: &[u8], mut holds: impl FnMut(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !holds(*byte)).unwrap_or(bytes.len())
}

fn is_mixed(tail: &[u8]) -> bool {
    tail.iter().any(u8::is_ascii_digit) && tail.iter().any(u8::is_ascii_alphabetic)
}

/// Where runs of characters end, for all words that begin in them: `b_b_b_…` is read once.
#[derive(Debug, Default)]
pub(super) struct TokenMemo {
    /// For each [`Tail`], and where it ends without the dots and dashes behind it.
    runs: [(Lookahead, usize); 7],
    digit: Lookahead,
    letter: Lookahead,
}

impl TokenMemo {
    /// The end of a tail from `at` on, and without the punctuation behind it.
    fn tail(&mut self, bytes: &[u8], at: usize, tail: Tail, steps: &mut StepBudget) -> (usize, usize) {
        let (ahead, trimmed) = &mut self.runs[tail as usize];
        let end = ahead.next(at, steps, || {
            let end = position(bytes, at, |byte| !tail.holds(byte));
            *trimmed = end - bytes[at..end].iter().rev().take_while(|byte| b".-/".contains(byte)).count();
            end
        });
        (end, (*trimmed).max(at))
    }

    fn is_mixed(&mut self, bytes: &[u8], range: Range<usize>, steps: &mut StepBudget) -> bool {
        let at = range.start;
        self.digit.next(at, steps, || position(bytes, at, |byte| byte.is_ascii_digit())) < range.end
            && self.letter.next(at, steps, || position(bytes, at, |byte| byte.is_ascii_alphabetic())) < range.end
    }
}

/// Whether a text begins with one.
pub(super) fn begins_with_token(bytes: &[u8]) -> bool {
    token_at(bytes, 0, &mut TokenMemo::default(), &mut StepBudget::of(bytes.len())).is_some()
}

/// The end of the credential that begins at this byte; what stands before it ends a word.
pub(super) fn token_at(all: &[u8], at: usize, memo: &mut TokenMemo, steps: &mut StepBudget) -> Option<usize> {
    let bytes = &all[at..];
    let (&[first, second], _) = bytes.split_first_chunk::<2>()?;
    if bytes.starts_with(b"eyJ")
        && let header = memo.tail(all, at, Tail::Url, steps).0 - at
        && let Some(length) = jwt(bytes, header, steps)
    {
        return Some(at + length);
    }
    if first.is_ascii_digit() && second.is_ascii_digit() {
        return bot_token(bytes).or_else(|| facebook_app(bytes)).or_else(|| salesforce(bytes)).map(|length| at + length);
    }
    if let Some(behind) = bytes.strip_prefix(b"bot") {
        return bot_token(behind).map(|length| at + length + 3);
    }
    if first == b'L' && bytes.starts_with(b"LS0tLS1CRUdJTi") {
        return base64_of_pem(bytes).map(|length| at + length);
    }
    if matches!(first, b'M' | b'N' | b'O')
        && let Some(length) = discord(bytes)
    {
        return Some(at + length);
    }
    if matches!((first, second), (b's', b'c') | (b'e', b'x') | (b'a', b'u'))
        && let Some(length) = authress(bytes)
    {
        return Some(at + length);
    }
    if matches!(first, b'p' | b's')
        && let Some(length) = pat(bytes)
    {
        return Some(at + length);
    }
    let of_first = &ORDER[usize::from(STARTS[usize::from(first)])..usize::from(STARTS[usize::from(first) + 1])];
    let formats = of_first.iter().map(|at| &TOKENS[usize::from(*at)]);
    formats.filter(|Token(prefix, ..)| bytes.starts_with(prefix.as_bytes())).find_map(|Token(prefix, tail, least, sure)| {
        let start = at + prefix.len();
        // Past the least length a credential runs as far as it can: a part of it is no good to leave.
        let (_, end) = memo.tail(all, start, *tail, steps);
        let length = end - start;
        let fits = match sure {
            Yes => length >= *least,
            Mixed => length >= *least && memo.is_mixed(all, start..end, steps),
            Exact => {
                length == *least
                    && is_mixed(&all[start..end])
                    && !all.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            }
        };
        fits.then_some(end)
    })
}

/// A credential that has a known part inside, of this run of characters from its beginning.
pub(super) fn token_inside(word: &[u8]) -> bool {
    INSIDE.iter().any(|(part, at, length)| length.contains(&word.len()) && word[*at..].starts_with(part.as_bytes()))
}

/// Lengths of words that [`token_inside`] knows.
pub(super) const INSIDE_LENGTHS: Range<usize> = 37..110;

/// `header.payload.signature`, or five parts where it is encrypted; a payload that was cut off is one, too.
fn jwt(bytes: &[u8], header: usize, steps: &mut StepBudget) -> Option<usize> {
    if !(12..=JWT_HEADER_MAX).contains(&header) || bytes.get(header) != Some(&b'.') {
        return None;
    }
    let length = run(bytes, |byte| Tail::Url.holds(byte) || byte == b'.' || byte == b'=');
    steps.spend(length);
    let behind = &bytes[header + 1..length];
    (behind.starts_with(b"eyJ") || behind.len() >= 16 && behind.iter().filter(|byte| **byte == b'.').count() >= 1).then_some(length)
}

/// `123456789:AA…` of Telegram.
fn bot_token(bytes: &[u8]) -> Option<usize> {
    let digits = run(&bytes[..bytes.len().min(12)], |byte| byte.is_ascii_digit());
    let behind = bytes[digits..].strip_prefix(b":")?;
    let length = run(&behind[..behind.len().min(37)], |byte| Tail::Url.holds(byte));
    ((7..=11).contains(&digits) && behind.starts_with(b"A") && (34..=36).contains(&length)).then_some(digits + 1 + length)
}

/// `ID|secret` of an application at Facebook.
fn facebook_app(bytes: &[u8]) -> Option<usize> {
    let digits = run(&bytes[..bytes.len().min(17)], |byte| byte.is_ascii_digit());
    let bar = [&b"|"[..], b"%7C", b"%7c"].into_iter().find(|bar| bytes[digits..].starts_with(bar))?;
    let secret = &bytes[digits + bar.len()..];
    let length = run(&secret[..secret.len().min(41)], |byte| Tail::Url.holds(byte));
    let fits = (15..=16).contains(&digits) && (27..=40).contains(&length) && is_mixed(&secret[..length]);
    fits.then_some(digits + bar.len() + length)
}

/// A session at Salesforce: the id of the organisation, `!`, and what follows.
fn salesforce(bytes: &[u8]) -> Option<usize> {
    let id = run(&bytes[..bytes.len().min(19)], |byte| byte.is_ascii_alphanumeric());
    if !bytes.starts_with(b"00D") || !(15..=18).contains(&id) || bytes.get(id) != Some(&b'!') {
        return None;
    }
    let tail = &bytes[id + 1..];
    let length = run(&tail[..tail.len().min(SALESFORCE_BYTES_MAX)], |byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (length >= 40).then_some(id + 1 + length)
}

/// More than a session at Salesforce has.
const SALESFORCE_BYTES_MAX: usize = 512;

/// `sc_….….acc-….…` of Authress.
fn authress(bytes: &[u8]) -> Option<usize> {
    let prefix = ["sc_", "ext_", "scauth_", "authress_"].into_iter().find(|prefix| bytes.starts_with(prefix.as_bytes()))?;
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric();
    let part = |from: usize, most: usize| run(&bytes[from..bytes.len().min(from + most)], is_of_id);
    let client = part(prefix.len(), 31);
    let key = prefix.len() + client + 1;
    if client < 5 || bytes.get(key - 1) != Some(&b'.') {
        return None;
    }
    let account = key + part(key, 7) + 1;
    if !bytes.get(account - 1..)?.starts_with(b".acc") {
        return None;
    }
    let length = run(&bytes[account..bytes.len().min(account + 160)], |byte| Tail::Dotted.holds(byte));
    (length >= 40).then_some(account + length)
}

/// Keys that begin with 32 hexadecimal digits: `…-us14` of Mailchimp, `…-xxxxxxxx-xxxxxxxx` of Mailgun. How many characters they have.
pub(super) fn behind_hex(bytes: &[u8]) -> Option<usize> {
    let (hex, behind) = bytes.split_at_checked(HEX_BYTES)?;
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let ends = |at: usize| behind.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte));
    let digits = behind.strip_prefix(b"-us").map_or(0, |zone| run(&zone[..zone.len().min(3)], |byte| byte.is_ascii_digit()));
    let length = match behind {
        _ if (1..=2).contains(&digits) => 3 + digits,
        [b'-', first @ ..] if first.len() >= 17 && is_hex(&first[..8]) && first[8] == b'-' && is_hex(&first[9..17]) => 18,
        _ => return None,
    };
    (is_hex(hex) && ends(length)).then_some(HEX_BYTES + length)
}

/// Digits of a hash of 128 bits.
pub(super) const HEX_BYTES: usize = 32;

/// The base64 of a PEM that is neither a certificate nor a public key.
fn base64_of_pem(bytes: &[u8]) -> Option<usize> {
    let label = &bytes[14..];
    let is_public = [&b"BDRVJUSUZJQ0FUR"[..], b"BQVUJMSUMg", b"BSU0EgUFVCTEl"].iter().any(|begin| label.starts_with(begin));
    if is_public {
        return None;
    }
    let length = wrapped_base64(bytes);
    (length >= 60).then_some(length)
}

/// Bytes of a line of base64 that may go on in the next one: programs wrap it at 64 or 76. A key in one line has more than these.
const WRAPPED_BYTES: RangeInclusive<usize> = 32..=128;

/// A shorter last line ends in `=`, or is a word.
const LAST_LINE_BYTES_MIN: usize = 16;

/// Whether a byte is a digit of base64, or what fills up its end.
pub(super) fn is_base64(byte: u8) -> bool {
    Tail::Base64.holds(byte)
}

/// The length of base64 with its lines, each as long as the first but the last: `base64 key.pem`.
pub(super) fn wrapped_base64(bytes: &[u8]) -> usize {
    let width = run(bytes, is_base64);
    let (mut end, mut length) = (width, width);
    while length == width && WRAPPED_BYTES.contains(&width) && matches!(bytes.get(end), Some(b'\n' | b'\r')) {
        let start = end + run(&bytes[end..], |byte| byte.is_ascii_whitespace());
        length = run(&bytes[start..bytes.len().min(start + width + 1)], is_base64);
        let behind = start + length;
        let ends =
            bytes.get(behind).is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"\"'`<,;&)\\".contains(byte));
        if length > width || !ends || length < LAST_LINE_BYTES_MIN && !bytes[start..behind].ends_with(b"=") {
            break;
        }
        end = behind;
    }
    end
}

/// A bot of Discord: its id in base64, a time, a signature.
fn discord(bytes: &[u8]) -> Option<usize> {
    let is_base64 = |byte: u8| Tail::Url.holds(byte);
    let id = run(&bytes[..bytes.len().min(30)], is_base64);
    let time = bytes.get(id + 1..)?;
    let signature = time.get(7..)?;
    let length = run(&signature[..signature.len().min(41)], is_base64);
    let parts = (24..=28).contains(&id) && bytes[id] == b'.' && run(&time[..7], is_base64) == 6 && time[6] == b'.';
    (parts && (27..=40).contains(&length) && is_mixed(&bytes[..id])).then_some(id + 8 + length)
}

/// Airtable's `pat….…` and Harness' `pat.….….…`.
fn pat(bytes: &[u8]) -> Option<usize> {
    let alnum = |bytes: &[u8]| run(bytes, |byte| byte.is_ascii_alphanumeric());
    if bytes.starts_with(b"pat.") || bytes.starts_with(b"sat.") {
        // One dot more and it is none, wherever it would end.
        let mut dots = 0;
        let length = run(bytes, |byte| {
            dots += usize::from(byte == b'.');
            Tail::Dotted.holds(byte) && dots <= 3
        });
        return (length >= 70 && dots == 3).then_some(length);
    }
    if !bytes.starts_with(b"pat") || alnum(&bytes[..bytes.len().min(18)]) != 17 || bytes.get(17) != Some(&b'.') {
        return None;
    }
    let hex = run(&bytes[18..bytes.len().min(18 + 65)], |byte| byte.is_ascii_hexdigit());
    (hex == 64).then_some(18 + hex)
}
