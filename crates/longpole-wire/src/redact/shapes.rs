//! Credentials that are known by how they look: what services put before them, so that they are found when they leak.
//!
//! ```text
//! ghp_ 0123456789abcdefghijABCDEFGHIJ012345
//! └──┘ └──────────── at least 36 letters and digits ─┘
//! ```
//!
//! The formats are facts that the services publish, or that anybody sees who holds such a key. Which services there are was checked
//! against the rules of gitleaks 8 (`docs/decisions/0019-what-a-credential-looks-like.md`); no rule was copied.

use std::ops::Range;

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

/// Prefix, alphabet and least length of what stands behind it.
struct Shape(&'static str, Tail, usize, Sure);

use Sure::{Exact, Mixed, Yes};
use Tail::{Alnum, Base64, Dotted, Hex, Upper, Url, Uuid};

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    // Seen before the table is.
    Shape("eyJ", Dotted, usize::MAX, Yes), Shape("LS0tLS1CRUdJTi", Base64, usize::MAX, Yes), Shape("pat", Alnum, usize::MAX, Yes),
    Shape("bot", Alnum, usize::MAX, Yes), Shape("sat", Alnum, usize::MAX, Yes), Shape("MT", Alnum, usize::MAX, Yes),
    Shape("Mj", Alnum, usize::MAX, Yes), Shape("Mz", Alnum, usize::MAX, Yes), Shape("ND", Alnum, usize::MAX, Yes),
    Shape("NT", Alnum, usize::MAX, Yes), Shape("Nj", Alnum, usize::MAX, Yes), Shape("Nz", Alnum, usize::MAX, Yes),
    Shape("OD", Alnum, usize::MAX, Yes), Shape("OT", Alnum, usize::MAX, Yes), Shape("sc_", Alnum, usize::MAX, Yes),
    Shape("ext_", Alnum, usize::MAX, Yes), Shape("scauth_", Alnum, usize::MAX, Yes), Shape("authress_", Alnum, usize::MAX, Yes),
    // Clouds.
    Shape("AKIA", Upper, 16, Yes), Shape("ASIA", Upper, 16, Exact), Shape("ABIA", Upper, 16, Exact), Shape("ACCA", Upper, 16, Exact),
    Shape("A3T", Upper, 17, Exact), Shape("ABSK", Base64, 100, Yes), Shape("bedrock-api-key-", Base64, 20, Yes),
    Shape("AIza", Url, 31, Yes), Shape("ya29.", Dotted, 20, Yes), Shape("GOCSPX-", Url, 20, Yes), Shape("1//0", Url, 30, Mixed),
    Shape("LTAI", Alnum, 12, Mixed), Shape("AKID", Alnum, 28, Mixed), Shape("dop_v1_", Hex, 32, Yes), Shape("doo_v1_", Hex, 32, Yes),
    Shape("dor_v1_", Hex, 32, Yes), Shape("DO00", Upper, 16, Exact), Shape("HRKU-", Url, 30, Yes), Shape("AVNS_", Url, 16, Yes),
    Shape("AQVN", Url, 35, Mixed), Shape("YC", Url, 38, Exact), Shape("t1.", Dotted, 90, Mixed), Shape("fo1_", Url, 40, Yes), Shape("fm1r_", Base64, 60, Yes),
    Shape("fm1a_", Base64, 60, Yes), Shape("fm2_", Base64, 60, Yes), Shape("tk-us-", Url, 40, Yes), Shape("pscale_", Dotted, 32, Yes),
    Shape("sbp_", Hex, 40, Yes), Shape("sb_secret_", Url, 20, Yes), Shape("rnd_", Alnum, 28, Mixed), Shape("napi_", Alnum, 40, Yes),
    Shape("nfp_", Alnum, 36, Yes), Shape("v1.0-", Url, 100, Yes), Shape("dnkey-", Url, 60, Yes), Shape("tskey-", Url, 20, Yes),
    Shape("SWMTKN-1-", Url, 40, Yes), Shape("sha256~", Url, 40, Yes), Shape("vcp_", Alnum, 24, Mixed), Shape("vca_", Alnum, 24, Mixed),
    Shape("vci_", Alnum, 24, Mixed), Shape("vck_", Alnum, 24, Mixed), Shape("vcr_", Alnum, 24, Mixed), Shape("vercel_blob_rw_", Url, 30, Yes),
    Shape("cfut_", Alnum, 40, Yes), Shape("cfat_", Alnum, 40, Yes), Shape("cfk_", Alnum, 40, Yes),
    // Code and builds.
    Shape("ghp_", Alnum, 16, Yes), Shape("gho_", Alnum, 16, Yes), Shape("ghs_", Alnum, 16, Yes), Shape("ghu_", Alnum, 16, Yes),
    Shape("ghr_", Alnum, 16, Yes), Shape("github_pat_", Url, 19, Yes), Shape("glpat-", Dotted, 14, Yes), Shape("gldt-", Url, 20, Yes),
    Shape("glcbt-", Url, 20, Yes), Shape("glffct-", Url, 20, Yes), Shape("glft-", Url, 20, Yes), Shape("glimt-", Url, 20, Yes),
    Shape("glagent-", Url, 40, Yes), Shape("gloas-", Url, 40, Yes), Shape("glptt-", Hex, 40, Yes), Shape("GR1348941", Url, 20, Yes),
    Shape("glrt-", Dotted, 20, Yes), Shape("glrtr-", Url, 20, Yes), Shape("glsoat-", Url, 20, Yes), Shape("ATBB", Alnum, 28, Mixed),
    Shape("ATATT3", Base64, 60, Yes), Shape("ATCTT3", Base64, 60, Yes), Shape("ATTA", Hex, 60, Mixed), Shape("npm_", Alnum, 36, Yes),
    Shape("pypi-", Url, 35, Mixed), Shape("rubygems_", Hex, 48, Yes), Shape("cio", Alnum, 32, Exact), Shape("CLOJARS_", Alnum, 50, Yes),
    Shape("oy2", Alnum, 43, Exact), Shape("dckr_pat_", Url, 20, Yes), Shape("dckr_oat_", Url, 20, Yes), Shape("AKCp", Alnum, 60, Yes),
    Shape("cmVmd", Alnum, 59, Exact), Shape("CCIPAT_", Url, 40, Yes), Shape("CCIPRJ_", Url, 40, Yes), Shape("bkua_", Alnum, 36, Yes),
    Shape("sgp_", Url, 40, Mixed), Shape("squ_", Alnum, 40, Yes), Shape("sqp_", Alnum, 40, Yes), Shape("sqa_", Alnum, 40, Yes),
    Shape("pul-", Hex, 36, Yes), Shape("API-", Upper, 26, Exact), Shape("pnu_", Alnum, 36, Yes), Shape("PMAK-", Url, 40, Yes),
    Shape("PMAT-", Url, 20, Mixed), Shape("rdme_", Alnum, 60, Yes), Shape("figd_", Url, 36, Yes), Shape("lin_api_", Alnum, 32, Yes),
    Shape("lin_oauth_", Alnum, 32, Yes), Shape("ntn_", Alnum, 40, Yes), Shape("secret_", Alnum, 43, Exact), Shape("ico-", Alnum, 32, Exact),
    // Secrets of machines.
    Shape("hvs.", Url, 20, Yes), Shape("hvb.", Url, 60, Yes), Shape("hvr.", Url, 20, Yes), Shape("s.", Alnum, 24, Exact),
    Shape("dp.pt.", Alnum, 40, Yes), Shape("dp.st.", Dotted, 40, Yes), Shape("dp.ct.", Alnum, 40, Yes), Shape("dp.sa.", Alnum, 40, Yes),
    Shape("dp.scim.", Alnum, 40, Yes), Shape("dp.audit.", Alnum, 40, Yes), Shape("ops_eyJ", Base64, 60, Yes), Shape("A3-", Url, 33, Mixed),
    Shape("AGE-SECRET-KEY-1", Upper, 50, Yes), Shape("AGE-PLUGIN-", Url, 40, Mixed),
    Shape("mdb_sa_sk_", Url, 20, Yes), Shape("dbtc_", Alnum, 30, Mixed), Shape("dbtu_", Alnum, 30, Mixed), Shape("snyk_uat.", Dotted, 40, Yes),
    Shape("snyk_sat.", Dotted, 40, Yes), Shape("ZXlK", Alnum, 60, Mixed),
    // Watching.
    Shape("glc_", Base64, 32, Yes), Shape("glsa_", Url, 40, Yes), Shape("eyJrIjoi", Base64, 60, Yes), Shape("dt0c01.", Dotted, 60, Yes),
    Shape("dt0s01.", Dotted, 60, Yes), Shape("dt0s16.", Dotted, 60, Yes), Shape("NRAK-", Alnum, 27, Yes), Shape("NRII-", Url, 32, Yes),
    Shape("NRJS-", Alnum, 19, Yes), Shape("NRRA-", Hex, 40, Yes), Shape("sntrys_", Base64, 40, Yes), Shape("sntryu_", Hex, 60, Yes),
    Shape("phx_", Alnum, 40, Yes), Shape("hcaik_", Alnum, 50, Yes), Shape("hcxik_", Alnum, 50, Yes), Shape("xaat-", Url, 32, Yes),
    Shape("xapt-", Url, 32, Yes), Shape("dapi", Hex, 32, Exact), Shape("dose", Hex, 32, Exact), Shape("dkea", Hex, 32, Exact),
    Shape("lsv2_", Url, 40, Yes), Shape("essu_", Alnum, 40, Mixed),
    // Models.
    Shape("sk-ant-", Url, 30, Yes), Shape("sk-proj-", Url, 30, Yes), Shape("sk-svcacct-", Url, 30, Yes), Shape("sk-admin-", Url, 30, Yes),
    Shape("sk-or-v1-", Hex, 40, Yes), Shape("sk-", Alnum, 20, Mixed), Shape("sk-lf-", Url, 30, Yes), Shape("hf_", Alnum, 34, Yes), Shape("hf_", Alnum, 30, Mixed),
    Shape("api_org_", Alnum, 34, Yes),
    Shape("gsk_", Alnum, 40, Yes), Shape("xai-", Alnum, 60, Yes), Shape("r8_", Alnum, 37, Exact), Shape("pplx-", Alnum, 40, Yes),
    Shape("tvly-", Url, 28, Mixed), Shape("pcsk_", Url, 40, Yes), Shape("nvapi-", Url, 50, Yes), Shape("jina_", Url, 50, Yes),
    Shape("sk_", Hex, 48, Exact), Shape("4b1d", Alnum, 38, Exact),
    Shape("tgp_v1_", Url, 30, Yes), Shape("csk-", Alnum, 40, Mixed), Shape("rpa_", Alnum, 36, Mixed), Shape("fc-", Hex, 32, Exact),
    Shape("wandb_v1_", Alnum, 40, Yes), Shape("e2b_", Hex, 40, Yes),
    // Money and shops.
    Shape("sk_live_", Alnum, 10, Yes), Shape("sk_test_", Alnum, 10, Yes), Shape("sk_prod_", Alnum, 10, Yes), Shape("rk_live_", Alnum, 10, Yes),
    Shape("rk_test_", Alnum, 10, Yes), Shape("rk_prod_", Alnum, 10, Yes), Shape("whsec_", Base64, 24, Yes), Shape("sq0atp-", Url, 22, Yes),
    Shape("sq0csp-", Url, 40, Yes), Shape("EAAA", Url, 56, Mixed), Shape("shpat_", Hex, 32, Yes), Shape("shpca_", Hex, 32, Yes),
    Shape("shppa_", Hex, 32, Yes), Shape("shpss_", Hex, 32, Yes), Shape("shippo_live_", Hex, 36, Yes), Shape("shippo_test_", Hex, 36, Yes),
    Shape("rzp_live_", Alnum, 14, Yes), Shape("rzp_test_", Alnum, 14, Yes), Shape("EZAK", Alnum, 54, Yes), Shape("EZTK", Alnum, 54, Yes),
    Shape("FLWSECK_TEST-", Url, 12, Yes), Shape("FLWSECK-", Url, 20, Yes), Shape("duffel_live_", Base64, 40, Yes),
    Shape("duffel_test_", Base64, 40, Yes), Shape("access-production-", Url, 36, Yes), Shape("access-development-", Url, 36, Yes),
    Shape("access-sandbox-", Url, 36, Yes), Shape("live_", Hex, 35, Exact), Shape("test_", Hex, 35, Exact),
    Shape("live_", Alnum, 30, Exact), Shape("test_", Alnum, 30, Exact), Shape("live_", Base64, 40, Exact), Shape("live_pub_", Hex, 31, Exact),
    Shape("test_pub_", Hex, 31, Exact), Shape("APP_USR-", Url, 40, Mixed), Shape("TEST-", Uuid, 60, Mixed),
    Shape("xnd_production_", Alnum, 40, Yes), Shape("xnd_development_", Alnum, 40, Yes),
    Shape("access_token$production$", Dotted, 20, Yes),
    // Messages.
    Shape("xoxa-", Url, 15, Yes), Shape("xoxb-", Url, 15, Yes), Shape("xoxc-", Url, 15, Yes), Shape("xoxd-", Base64, 15, Yes), Shape("xoxe-", Url, 15, Yes),
    Shape("xoxo-", Url, 15, Mixed),
    Shape("xoxp-", Url, 15, Yes), Shape("xoxr-", Url, 15, Yes), Shape("xoxs-", Url, 15, Yes), Shape("xoxe.xox", Dotted, 20, Yes),
    Shape("xapp-", Url, 20, Yes), Shape("xkeysib-", Url, 60, Yes), Shape("xsmtpsib-", Url, 60, Yes), Shape("SG.", Dotted, 37, Mixed),
    Shape("key-", Hex, 32, Exact), Shape("SK", Hex, 32, Exact), Shape("re_", Url, 30, Mixed), Shape("mfa.", Url, 60, Mixed),
    Shape("tfp_", Dotted, 50, Yes), Shape("EAA", Alnum, 90, Mixed), Shape("IGQV", Url, 60, Mixed), Shape("IGAA", Alnum, 90, Mixed),
    Shape("AAAAAAAAAAAAAAAAAAAAA", Alnum, 40, Mixed), Shape("fio-u-", Base64, 60, Yes), Shape("CFPAT-", Url, 40, Yes),
    Shape("sl.", Url, 120, Mixed), Shape("pat-na1-", Url, 36, Yes), Shape("pat-eu1-", Url, 36, Yes), Shape("sdk-", Hex, 32, Exact),
    Shape("sdk-", Uuid, 36, Exact), Shape("mob-", Uuid, 36, Exact), Shape("api-", Uuid, 36, Exact), Shape("endr+", Alnum, 16, Exact),
    Shape("s-s4t2ud-", Hex, 64, Yes), Shape("s-s4t2af-", Hex, 64, Yes),
    Shape("aio_", Alnum, 28, Exact), Shape("p8e-", Alnum, 32, Exact), Shape("BBFF-", Alnum, 30, Yes), Shape("sm_aat_", Alnum, 16, Yes),
    Shape("sm_pat_", Alnum, 16, Yes), Shape("sm_sat_", Alnum, 16, Yes), Shape("sk.eyJ", Dotted, 40, Yes), Shape("CMCREST_", Alnum, 60, Yes),
    Shape("v4.local.", Url, 40, Yes), Shape("v3.local.", Url, 40, Yes), Shape("zpka_", Url, 40, Yes), Shape("fly_", Url, 40, Mixed),
    Shape("b_", Url, 44, Exact), Shape("scw_", Url, 40, Mixed), Shape("oauth:", Alnum, 30, Exact),
];

const _: () = assert!(PREFIXES <= u16::MAX as usize);

/// Shapes by their first byte: those of `byte` are `ORDER[STARTS[byte]..STARTS[byte + 1]]`, in the order of the table.
#[expect(clippy::cast_possible_truncation, reason = "there are no more shapes than PREFIXES")]
static ORDER: [u16; PREFIXES] = {
    let mut order = [0; PREFIXES];
    let (mut byte, mut next) = (0, 0);
    while byte < 256 {
        let mut at = 0;
        while at < PREFIXES {
            if SHAPES[at].0.as_bytes()[0] as usize == byte {
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
            count += (SHAPES[at].0.as_bytes()[0] as usize == byte) as u16;
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

/// How many shapes there are.
pub(super) const PREFIXES: usize = SHAPES.len();

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

/// Notes how this shape begins.
pub(super) const fn add_beginning(set: &mut [u64; 1024], shape: usize) {
    let prefix = SHAPES[shape].0.as_bytes();
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

/// No shape is shorter.
pub(super) const SHAPE_BYTES_MIN: usize = 16;

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
pub(super) struct ShapeMemo {
    /// For each [`Tail`], and where it ends without the dots and dashes behind it.
    runs: [(Lookahead, usize); 7],
    digit: Lookahead,
    letter: Lookahead,
}

impl ShapeMemo {
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
pub(super) fn begins_with_shape(bytes: &[u8]) -> bool {
    shape_at(bytes, 0, &mut ShapeMemo::default(), &mut StepBudget::of(bytes.len())).is_some()
}

/// The end of the credential that begins at this byte; what stands before it ends a word.
pub(super) fn shape_at(all: &[u8], at: usize, memo: &mut ShapeMemo, steps: &mut StepBudget) -> Option<usize> {
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
    let shapes = of_first.iter().map(|at| &SHAPES[usize::from(*at)]);
    shapes.filter(|Shape(prefix, ..)| bytes.starts_with(prefix.as_bytes())).find_map(|Shape(prefix, tail, least, sure)| {
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
pub(super) fn shape_inside(word: &[u8]) -> bool {
    INSIDE.iter().any(|(part, at, length)| length.contains(&word.len()) && word[*at..].starts_with(part.as_bytes()))
}

/// Lengths of words that [`shape_inside`] knows.
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
    let length = run(bytes, |byte| Tail::Base64.holds(byte));
    (length >= 60).then_some(length)
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
