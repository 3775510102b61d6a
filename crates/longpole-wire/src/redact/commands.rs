//! Command lines: an option whose value is a credential, by its name or because the program takes one there.
//!
//! ```text
//! deploy --password hunter2      by name, with any program
//! curl -u ann:hunter2            because it is curl: behind the colon
//! docker exec db mysql -phunter2 because it is mysql: attached; `mysql -p` asks for it, and `ssh -p 22` is a port
//! ```

use std::ops::Range;
use std::sync::LazyLock;

use longpole_model::fast_hash::FastMap;

use super::bytes::position;
use super::known_names::Names;
use super::lookahead::Lookahead;
use super::names::Meaning;
use super::programs::Takes::{self, Attached, BeforeAt, BehindColon, BehindColonOrBearer, BehindPass, Next, Value};
use super::programs::{
    LOGINS, NAMED, NAMED_BY_BEGINNING, PAIRS, POSITIONS, SETTER_WORDS, SETTERS, SQLPLUS, TOOLS, Tool, reads_input, takes_words,
};
use super::step_budget::{StepBudget, WORD_BYTES};
use super::value_forms::{LONG_BYTES_MIN, is_key, is_nothing, is_password, scheme_length};

/// Words that stand behind the name of an option in a message: `--password is required`.
const PROSE: &[&str] = &[
    "again",
    "and",
    "are",
    "argument",
    "as",
    "cannot",
    "expired",
    "failed",
    "fails",
    "first",
    "flag",
    "for",
    "from",
    "has",
    "if",
    "in",
    "instead",
    "is",
    "may",
    "must",
    "needed",
    "nor",
    "not",
    "option",
    "or",
    "required",
    "requires",
    "should",
    "succeeded",
    "succeeds",
    "then",
    "to",
    "value",
    "was",
    "will",
    "with",
    "works",
];

/// The name of a program without its path.
pub(super) fn program(word: &str) -> &str {
    // `PosixPath('/usr/bin/mysql')`.
    let word = word.trim_end_matches(['\'', '"']);
    // `cd /srv&&mysql`, `system("mysql", …)`.
    let name = word.rsplit(['/', '\\', '&', '|', '(', '"', '\'']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Programs that run the program behind them, and words of a shell that stand before one.
const RUNNERS: &[&[u8]] = &[
    b"sudo", b"doas", b"env", b"exec", b"nohup", b"time", b"nice", b"command", b"if", b"then", b"else", b"do", b"while", b"until", b"RUN",
];

pub(super) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&word.as_bytes())
}

/// A byte that may stand before the name of a program: a blank, a quote, a bracket, a mark that parts commands.
const BEFORE: u8 = 1;

/// A byte behind which a command begins: in the next line, behind another command, or inside of one (`$(…)`, backticks).
const PARTS: u8 = 2;

/// A byte of the name of a program.
const OF_NAME: u8 = 4;

/// What each byte is, so that one look at a table tells.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0u8;
    while byte.is_ascii() {
        if byte.is_ascii_control() {
            kinds[byte as usize] = BEFORE;
        }
        if byte.is_ascii_alphanumeric() {
            kinds[byte as usize] = OF_NAME;
        }
        byte += 1;
    }
    let lists: [(&[u8], u8); 3] = [(b" [({\"'`,|&!$", BEFORE), (b";\n|&`(", PARTS), (b"-_/.", OF_NAME)];
    let mut list = 0;
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].0.len() {
            kinds[lists[list].0[at] as usize] |= lists[list].1;
            at += 1;
        }
        list += 1;
    }
    kinds
};

fn is(byte: u8, kind: u8) -> bool {
    KINDS[byte as usize] & kind != 0
}

/// Whether a text has a program that takes a credential without an option, or one that may run another, where a command begins. `breaks`
/// says whether commands may begin behind the first one: that there is one of these marks.
///
/// One pass goes from each place where a command may begin to the next one, so the function reads each byte once, however many lines are blank.
pub(super) fn runs_one(text: &str, breaks: bool, steps: &mut StepBudget) -> bool {
    let bytes = text.as_bytes();
    let mut spaces = Lookahead::default();
    // Where a command may begin: here, and behind the value of a variable.
    let (mut at, mut behind_value) = (0, None);
    loop {
        let start = position(bytes, at, |byte| !is(byte, BEFORE));
        let near = &bytes[start..bytes.len().min(start + PROGRAM_BYTES_MAX)];
        let end = start + position(near, 0, |byte| !is(byte, OF_NAME));
        steps.spend(end - at);
        let word = &bytes[start..end];
        // `A=1 vault login …`.
        if !word.is_empty() && bytes.get(end) == Some(&b'=') {
            let space = spaces.next(end, steps, || position(bytes, end, |byte| byte == b' '));
            behind_value = Some(space).filter(|space| space - end < ASSIGNMENT_BYTES_MAX);
        }
        let word = if word.starts_with(b"/") { word.rsplit(|byte| *byte == b'/').next().unwrap_or(word) } else { word };
        // A word at the end has no arguments, but another command may write into it.
        if end == bytes.len() {
            return start > 0 && reads_input(word);
        }
        if RUNNERS.contains(&word) {
            at = end;
            continue;
        }
        if takes_words(word) && bytes[end] != b'=' {
            return true;
        }
        // Whichever comes first: the end of the value or the next command.
        let value = behind_value.take().filter(|value| *value >= end);
        let limit = value.unwrap_or(bytes.len());
        let next = if breaks { position(&bytes[..limit], end, |byte| is(byte, PARTS)) } else { limit };
        steps.spend(next - end);
        if next == bytes.len() {
            return false;
        }
        at = next + 1;
        behind_value = value.filter(|value| *value > next);
    }
}

/// The longest path of a program that is known at the beginning of a text.
const PROGRAM_BYTES_MAX: usize = 64;

/// The longest value of a variable before such a program.
const ASSIGNMENT_BYTES_MAX: usize = 256;

/// The parts of the words of a list that are credentials. `None` if they take more steps than a text of their length may.
pub(super) fn credentials_of_list(words: &[&str], names: &mut Names) -> Option<Vec<(usize, Range<usize>)>> {
    names.steps.begin(words.iter().map(|word| word.len() + WORD_BYTES).sum());
    let found = credentials(words, false, names);
    (!names.steps.is_spent()).then_some(found)
}

/// The parts of these words that are credentials: which word, and where in it. `in_text` says that they were cut out of a text, which
/// may be prose. The words take of the steps of that text; when those are spent, the rest is not read.
pub(super) fn credentials(words: &[&str], in_text: bool, names: &mut Names) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    if !in_text {
        found.extend(of_config(words, names).into_iter().map(|at| (at, 0..words[at].len())));
    }
    let is_bearer = |word: &&str| {
        let word = word.strip_prefix("-A").unwrap_or(word);
        word.rsplit('=').next().is_some_and(|word| word.eq_ignore_ascii_case("bearer"))
    };
    let mut past = Past { bearer: words.iter().any(is_bearer), ..Past::default() };
    // `["AUTH", "hunter2"]`, as clients of Redis have it.
    if !in_text && (2..=3).contains(&words.len()) && words[0].eq_ignore_ascii_case("auth") {
        let is_one = |word: &str| words[0] == "AUTH" || is_password(word);
        found.extend(words.iter().enumerate().skip(1).filter(|(_, word)| is_one(word)).map(|(at, word)| (at, 0..word.len())));
    }
    // One of them may be a path with a colon.
    let of_windows = words.iter().filter(|word| option_of_windows(word).is_some()).take(2).count() == 2;
    let mut after: Option<Takes> = None;
    let mut programs = ProgramFacts::default();
    for (at, word) in words.iter().enumerate() {
        if let Some(before) = at.checked_sub(1) {
            past.pass(before, words[before], programs);
        }
        programs = ProgramFacts::of(word);
        names.steps.spend(WORD_STEPS + word.len() + past.rules());
        if names.steps.is_spent() {
            break;
        }
        let whole = || 0..word.len();
        if let Some(takes) = after.take()
            && (!word.starts_with('-') || takes != Value || is_key_behind_dash(word))
        {
            let is_prose = in_text && takes == Value && PROSE.contains(word);
            let here = value(word, 0, takes).filter(|_| !is_prose).map(|range| (at, range));
            // `-u 'ann':'hunter2'` is one word for the shell, and two for who reads a text with quotes.
            let behind = || {
                let next = words.get(at + 1).filter(|next| in_text && takes.mark().is_some_and(|mark| next.starts_with(mark)))?;
                value(next, 0, takes).map(|range| (at + 1, range))
            };
            found.extend(here.or_else(behind));
            continue;
        }
        if let Some(option) = word.strip_prefix('-') {
            let (name, equals) = match word.find('=') {
                Some(equals) => (&option[..equals - 1], Some(equals)),
                None => (option, None),
            };
            let named = |name: &str, names: &mut Names| {
                if name.contains(' ') { Meaning::Plain } else { names.meaning(name.trim_start_matches('-')) }
            };
            // `influx -token …`: not `-t` with the value `oken`.
            let is_own = |start: usize, names: &mut Names| {
                let is_one = |name: &str, names: &mut Names| named(name, names).is_sure();
                start == SHORT_BYTES && !option.starts_with('-') && is_one(name, names) && !is_one(&option[1..], names)
            };
            match past.option(word, &mut names.steps) {
                Some(ValuePlace::Next(takes)) => after = Some(takes),
                Some(ValuePlace::Here(start, takes)) if !is_own(start, names) => {
                    found.extend(value(word, start, takes).map(|range| (at, range)))
                }
                _ => match (named(name, names), equals) {
                    (Meaning::Plain, _) | (Meaning::Maybe | Meaning::For | Meaning::ForKnown | Meaning::SecretId, Some(_)) => {}
                    // The value decides.
                    (Meaning::Maybe, None) => {
                        let next = words.get(at + 1).filter(|next| is_random_value(next));
                        found.extend(next.map(|next| (at + 1, 0..next.len())));
                    }
                    (meaning @ (Meaning::For | Meaning::ForKnown | Meaning::SecretId), None) => {
                        let next = words.get(at + 1).filter(|next| meaning.is_of(next));
                        found.extend(next.map(|next| (at + 1, 0..next.len())));
                    }
                    (_, Some(equals)) => found.extend(value(word, equals + 1, Value).map(|range| (at, range))),
                    (_, None) => after = Some(Value),
                },
            }
            continue;
        }
        if word.starts_with('/')
            && let Some(ValuePlace::Here(start, takes)) = past.option(word, &mut names.steps)
        {
            found.extend(value(word, start, takes).map(|range| (at, range)));
            continue;
        }
        if of_windows
            && let Some(name) = option_of_windows(word)
            && names.meaning(name).is_sure()
        {
            found.extend(value(word, name.len() + "/:".len(), Value).map(|range| (at, range)));
            continue;
        }
        // `ACL SETUSER ann on >hunter2`.
        if past.acl && word.starts_with(['>', '<', '#']) {
            found.extend(value(word, 1, Value).map(|range| (at, range)));
            continue;
        }
        // `PGPASSWORD=hunter2`: all behind `=` is the value, whatever it has inside.
        if let Some(equals) = word.find('=').filter(|equals| *equals > 0) {
            let name = &word[..equals];
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
            if is_name
                && !in_text
                && matches!(names.meaning(name), Meaning::Password | Meaning::Token | Meaning::Signature | Meaning::Tokens)
            {
                found.extend(value(word, equals + 1, Value).map(|range| (at, range)));
            }
            if past.pairs.iter().any(|(line, since)| since.has(PAIRS[*line].1)) {
                found.extend(value(word, equals + 1, Value).map(|range| (at, range)));
            }
            // `ExecStart=/usr/bin/mysql …`.
            if in_text && word[equals + 1..].starts_with('/') {
                past.run(at, ProgramFacts::of(&word[equals + 1..]), &mut names.steps);
            }
            if past.sqlplus && name.eq_ignore_ascii_case("userid") {
                let of_value = of_sqlplus(&word[equals + 1..]);
                found.extend(of_value.map(|range| (at, equals + 1 + range.start..equals + 1 + range.end)));
            }
            continue;
        }
        if in_text && PROSE.contains(word) {
            // A sentence: what follows is no argument.
            past.positions.clear();
        }
        for (line, since) in &past.positions {
            let (_, behind, skip, takes) = &POSITIONS[*line];
            if since.has(behind) && since.count >= *skip && behind.last() != Some(word) {
                found.extend(value(word, 0, *takes).map(|range| (at, range)));
            }
        }
        let is_named = past.named.iter().any(|(line, since)| since.has(NAMED[*line].1)) && is_behind_name(words, at, names);
        if is_named && !(in_text && PROSE.contains(word)) && !is_nothing(word) {
            found.push((at, whole()));
        }
        if past.login {
            found.extend(value(word, 0, BeforeAt).map(|range| (at, range)));
        }
        if past.sets > 0 && names.meaning(words[at - 1]).is_sure() && !(in_text && PROSE.contains(word)) && !is_nothing(word) {
            found.push((at, whole()));
        }
        if past.htpasswd.takes() {
            found.push((at, whole()));
        }
        if past.sqlplus {
            found.extend(of_sqlplus(word).map(|range| (at, range)));
        }
        past.run(at, programs, &mut names.steps);
    }
    found
}

/// Steps that any word takes, however short.
const WORD_STEPS: usize = 4;

/// In which lines of the tables the name of a program stands.
#[derive(Default)]
struct TableLines {
    tools: Vec<usize>,
    positions: Vec<usize>,
    pairs: Vec<usize>,
    named: Vec<usize>,
    login: bool,
    htpasswd: bool,
    sqlplus: bool,
}

/// The names of all programs of the tables: to compare each word with each of them took two microseconds.
static PROGRAMS: LazyLock<FastMap<&str, TableLines>> = LazyLock::new(|| {
    let mut programs: FastMap<&str, TableLines> = FastMap::default();
    let mut note = |names: &[&'static str], note: &dyn Fn(&mut TableLines)| {
        names.iter().for_each(|name| note(programs.entry(name).or_default()));
    };
    TOOLS.iter().enumerate().for_each(|(line, Tool(names, ..))| note(names, &|lines| lines.tools.push(line)));
    POSITIONS.iter().enumerate().for_each(|(line, (names, ..))| note(names, &|lines| lines.positions.push(line)));
    PAIRS.iter().enumerate().for_each(|(line, (names, _))| note(names, &|lines| lines.pairs.push(line)));
    NAMED.iter().enumerate().for_each(|(line, (names, _))| note(names, &|lines| lines.named.push(line)));
    note(LOGINS, &|lines| lines.login = true);
    note(&["htpasswd"], &|lines| lines.htpasswd = true);
    note(SQLPLUS, &|lines| lines.sqlplus = true);
    programs
});

/// What the tables say of a word that may name a program: as it stands, and without its path.
#[derive(Clone, Copy, Default)]
struct ProgramFacts([Option<&'static TableLines>; 2]);

impl ProgramFacts {
    fn of(word: &str) -> Self {
        let name = if word.len() > 4 || word.contains(['/', '&', '|', '(']) { program(word) } else { word };
        let lines = |name: &str| if name.len() <= PROGRAM_NAME_BYTES_MAX { PROGRAMS.get(name) } else { None };
        ProgramFacts([if name.len() == word.len() { None } else { lines(word) }, lines(name)])
    }

    fn any(self, of: impl Fn(&TableLines) -> bool) -> bool {
        self.0.into_iter().flatten().any(of)
    }

    fn lines(self, of: impl Fn(&'static TableLines) -> &'static [usize]) -> impl Iterator<Item = usize> {
        self.0.into_iter().flatten().flat_map(of).copied()
    }
}

/// The longest name of a program in the tables has 21 bytes.
const PROGRAM_NAME_BYTES_MAX: usize = 32;

/// What the words before say of the present one. It is carried from word to word: none looks back, so a line of any length is judged in one
/// pass.
#[derive(Default)]
struct Past {
    /// Programs of [`TOOLS`] whose options are taken, in the order in which they stand: where, and which.
    tools: Vec<(usize, usize)>,
    /// Those that wait for a word to stand behind them.
    waiting: Vec<(usize, usize)>,
    /// The lines of the tables whose program stood before, and the words since.
    positions: Vec<(usize, Since)>,
    pairs: Vec<(usize, Since)>,
    named: Vec<(usize, Since)>,
    htpasswd: Htpasswd,
    sqlplus: bool,
    /// Behind one of [`LOGINS`].
    login: bool,
    /// Behind `setuser` of Redis.
    acl: bool,
    /// How many words behind one of [`SETTERS`] may still be a value.
    sets: usize,
    /// Behind `set` and its options.
    set: bool,
    /// An option says that what authenticates is a token.
    bearer: bool,
}

impl Past {
    /// Goes past this word, whatever it is.
    fn pass(&mut self, at: usize, word: &str, programs: ProgramFacts) {
        pass(&mut self.positions, word, programs.lines(|lines| &lines.positions), |line| POSITIONS[line].1);
        pass(&mut self.pairs, word, programs.lines(|lines| &lines.pairs), |line| PAIRS[line].1);
        pass(&mut self.named, word, programs.lines(|lines| &lines.named), |line| NAMED[line].1);
        self.login |= programs.any(|lines| lines.login);
        self.htpasswd.pass(word, programs.any(|lines| lines.htpasswd));
        self.sqlplus |= programs.any(|lines| lines.sqlplus);
        // `set -gx NAME hunter2` of fish.
        let exports = self.set && word.starts_with('-') && word.contains('x');
        self.set = word == "set" || self.set && word.starts_with('-');
        self.sets = if SETTERS.contains(&word) || exports { SETTER_WORDS } else { self.sets.saturating_sub(1) };
        self.acl |= word.eq_ignore_ascii_case("setuser");
        // What it waited for, which may be the program itself.
        let fits = |(from, tool): &mut (usize, usize)| *from <= at && TOOLS[*tool].1 == word;
        for (from, tool) in self.waiting.extract_if(.., fits) {
            insert(&mut self.tools, from, tool);
        }
    }

    /// Notes that this word may be the program that runs.
    fn run(&mut self, at: usize, programs: ProgramFacts, steps: &mut StepBudget) {
        for tool in programs.lines(|lines| &lines.tools) {
            steps.spend(self.tools.len());
            insert(if TOOLS[tool].1.is_empty() { &mut self.tools } else { &mut self.waiting }, at, tool);
        }
    }

    /// How many facts have to be compared with each word.
    fn rules(&self) -> usize {
        self.positions.len() + self.pairs.len() + self.named.len() + self.waiting.len()
    }

    /// How the last program that knows this option takes it.
    fn option(&self, word: &str, steps: &mut StepBudget) -> Option<ValuePlace> {
        let takes = |takes: Takes| match takes {
            BehindColonOrBearer if self.bearer => Value,
            BehindColonOrBearer => BehindColon,
            takes => takes,
        };
        self.tools.iter().rev().find_map(|(_, tool)| {
            let options = TOOLS[*tool].2;
            steps.spend(options.len());
            options.iter().find_map(|(option, how)| taken(word, option, takes(*how)))
        })
    }
}

/// Takes a word to those lines of a table whose program stood before, and notes the lines that have the word itself as a program.
fn pass(
    seen: &mut Vec<(usize, Since)>,
    word: &str,
    programs: impl Iterator<Item = usize>,
    behind: impl Fn(usize) -> &'static [&'static str],
) {
    for (line, since) in &mut *seen {
        since.pass(word, behind(*line));
    }
    for line in programs {
        match seen.iter_mut().find(|(other, _)| *other == line) {
            Some((_, since)) => *since = Since::default(),
            None => seen.push((line, Since::default())),
        }
    }
}

/// Puts a tool where it stands now. Only its last place counts.
fn insert(tools: &mut Vec<(usize, usize)>, at: usize, tool: usize) {
    tools.retain(|(_, other)| *other != tool);
    let place = tools.partition_point(|other| *other < (at, tool));
    tools.insert(place, (at, tool));
}

/// The words seen since the last of some programs.
#[derive(Clone, Copy, Default)]
struct Since {
    /// How many of the words that have to stand behind it.
    seen: usize,
    /// Words that are no options, since the program or the last of these words.
    count: usize,
}

impl Since {
    fn pass(&mut self, word: &str, behind: &[&str]) {
        self.seen += usize::from(behind.get(self.seen) == Some(&word));
        if behind.last() == Some(&word) {
            self.count = 0;
        } else {
            self.count += usize::from(!word.starts_with('-'));
        }
    }

    fn has(&self, behind: &[&str]) -> bool {
        self.seen == behind.len()
    }
}

/// `htpasswd -nb ann hunter2`, `htpasswd -b file ann hunter2`.
#[derive(Default)]
struct Htpasswd {
    program: bool,
    batch: bool,
    prints: bool,
    /// The next word is how much work the hash takes: `-C 12`.
    cost: bool,
    names: usize,
}

impl Htpasswd {
    fn pass(&mut self, word: &str, is_program: bool) {
        if is_program {
            *self = Htpasswd { program: true, ..Htpasswd::default() };
        }
        if !self.program {
            return;
        }
        if word.starts_with('-') && !word.starts_with("--") {
            self.batch |= word.contains('b');
            self.prints |= word.contains('n');
            self.cost = word.ends_with(['C', 'r']);
            return;
        }
        let is_cost = std::mem::take(&mut self.cost) && word.bytes().all(|byte| byte.is_ascii_digit());
        self.names += usize::from(!is_program && !is_cost && !word.starts_with('-'));
    }

    /// Whether the next word is the password.
    fn takes(&self) -> bool {
        self.program && self.batch && !self.cost && self.names == if self.prints { 1 } else { 2 }
    }
}

/// The name of an option as programs of Windows have it: `/TargetPassword:hunter2`.
fn option_of_windows(word: &str) -> Option<&str> {
    let (name, _) = word.strip_prefix('/')?.split_once(':')?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(name)
}

/// Bytes of an option of one letter.
const SHORT_BYTES: usize = 2;

/// Whether the word behind an option like `--auth` is a credential: it looks random, as no path does.
fn is_random_value(word: &str) -> bool {
    match word.split_once("://") {
        Some((_, address)) => address.split('/').skip(1).any(is_key),
        None => !word.starts_with(['/', '.', '~', '-']) && is_key(word),
    }
}

/// Whether this is no option but a value: one of 64 keys of base64 for URLs begins with `-`. Words of an option have one case.
fn is_key_behind_dash(word: &str) -> bool {
    let is_base64 = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let has_both_cases = word.bytes().any(|byte| byte.is_ascii_lowercase()) && word.bytes().any(|byte| byte.is_ascii_uppercase());
    is_base64 && has_both_cases && !word.starts_with("--") && is_key(word)
}

/// Where the value of an option stands.
enum ValuePlace {
    Next(Takes),
    /// From this byte of the word on.
    Here(usize, Takes),
}

/// The longest word of options in one: `-sSu`. A longer one is an option of another kind: `-prefetch`. Behind one that takes `user:password`
/// the colon decides, so there is no limit: `curl -fsSLku`.
const COMBINED_BYTES_MAX: usize = 6;

/// Whether this word is that option.
fn taken(word: &str, option: &str, takes: Takes) -> Option<ValuePlace> {
    if word == option {
        return (takes != Attached).then_some(ValuePlace::Next(if takes == Next { Value } else { takes }));
    }
    if option.ends_with(':') {
        return word.strip_prefix(option).map(|_| ValuePlace::Here(option.len(), takes));
    }
    if option.starts_with("--") || option.len() > 3 {
        return word.strip_prefix(option).filter(|rest| rest.starts_with('=')).map(|_| ValuePlace::Here(option.len() + 1, takes));
    }
    if takes == Next || word.starts_with("--") {
        return None;
    }
    if word.starts_with(option) {
        return Some(ValuePlace::Here(option.len(), takes));
    }
    // `curl -sSu ann:hunter2`, `zip -rP hunter2 …`.
    let combined = option.len() == 2
        && (takes == BehindColon || takes == Value && word.len() <= COMBINED_BYTES_MAX)
        && word.ends_with(&option[1..])
        && word.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
    combined.then_some(ValuePlace::Next(takes))
}

/// The credential in the value of an option, which begins at this byte of the word.
fn value(word: &str, start: usize, takes: Takes) -> Option<Range<usize>> {
    let value = &word[start..];
    let behind = |mark: char| value.find(mark).map(|at| start + at + 1);
    // `TOKEN:`, `TOKEN:x-oauth-basic`: the token stands in the place of the user.
    let is_user = matches!(takes, BehindColon | BehindColonOrBearer)
        && value.split_once(':').is_some_and(|(user, _)| user.len() >= LONG_BYTES_MIN && !user.contains(['.', '/']) && is_key(user));
    // `-Password (ConvertTo-SecureString "hunter2" …)`: a command, whose text is found by it.
    if value.eq_ignore_ascii_case("convertto-securestring") {
        return None;
    }
    let end = if takes == BeforeAt { start + value.rfind('@')? } else { word.len() };
    let from = match takes {
        _ if is_user => Some(start),
        BehindPass => value.starts_with("pass:").then_some(start + "pass:".len()),
        BeforeAt => {
            // `:pserver:ann:hunter2@host` of CVS: a method stands before the user.
            let method = value.strip_prefix(':').and_then(|value| value.find(':')).map_or(0, |colon| colon + 2);
            let user = word.get(start + method..end)?.find(':');
            user.map(|colon| start + method + colon + 1)
        }
        takes => takes.mark().map_or(Some(start), behind),
    }?;
    // The mark of a URL: `bundle config mirror.a https://b`.
    if word[from..].starts_with("//") {
        return None;
    }
    // `--header=Bearer x`, `--cookie file`.
    let from = from + scheme_length(&word[from..end]);
    let inside = in_quotes(&word[from..end]);
    let from = from + inside.start;
    let range = from..from + inside.len();
    (!is_nothing(&word[range.clone()])).then_some(range)
}

/// What stands in the quotes around a value, or all of it: `"$PASSWORD"` is a variable.
fn in_quotes(value: &str) -> Range<usize> {
    let is_quoted = |quote: char| {
        let inside = value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
        inside.is_some_and(|inside| !inside.contains(quote))
    };
    if ['"', '\''].into_iter().any(is_quoted) { 1..value.len() - 1 } else { 0..value.len() }
}

/// Whether the word before is the name of a credential, or begins as one behind which a user and a password stand.
fn is_behind_name(words: &[&str], at: usize, names: &mut Names) -> bool {
    let before = |back: usize| at.checked_sub(back).map_or("", |before| words[before]);
    names.meaning(before(1)).is_sure()
        || NAMED_BY_BEGINNING.iter().any(|(begin, count)| (1..=*count).any(|back| before(back).starts_with(begin)))
}

/// Words in which `set` follows `config`.
const OPTIONS_OF_CONFIG_MAX: usize = 6;

/// `config set --secret KEY VALUE` and `config set dbPassword VALUE` of Pulumi and others. Options may take a word too, so it is every
/// word behind the first one. `aws configure set aws_secret_access_key VALUE` likewise.
pub(super) fn of_config(words: &[&str], names: &mut Names) -> Vec<usize> {
    let is_config = |word: &str| ["config", "configure", "env"].iter().any(|config| config.eq_ignore_ascii_case(word));
    // Options, with or without a value, may stand between: `config --stack dev set`.
    let is_set = |from: usize| {
        let behind = words[from + 1..].iter().take(OPTIONS_OF_CONFIG_MAX);
        let set = behind.clone().position(|word| word.eq_ignore_ascii_case("set"));
        set.filter(|set| *set == 0 || words[from + 1].starts_with('-'))
    };
    let found = (0..words.len()).find_map(|at| is_config(words[at]).then(|| is_set(at)).flatten().map(|set| at + set));
    let Some(first) = found else { return Vec::new() };
    let end = words[first..].iter().position(|word| ["&&", "||", "|", ";"].contains(word)).map_or(words.len(), |end| first + end);
    let named: Vec<usize> = (first + 2..end).filter(|at| !words[*at].starts_with('-')).collect();
    let is_secret = |word: &str, names: &mut Names| names.meaning(word).is_sure();
    let concerned = words[first..end].contains(&"--secret") || named.iter().rev().skip(1).any(|at| is_secret(words[*at], names));
    if concerned { named.into_iter().skip(1).collect() } else { Vec::new() }
}

/// `ann/hunter2@db`, `ann/hunter2`.
fn of_sqlplus(word: &str) -> Option<Range<usize>> {
    // Behind a user in quotes, `'ann'/'hunter2'`, the slash begins a word.
    let is_user = |user: &str, rest: &str| !user.is_empty() && !user.contains(['.', ':', '@']) || rest.starts_with(['\'', '"']);
    let (user, rest) = word.split_once('/').filter(|(user, rest)| is_user(user, rest))?;
    let is_path = |rest: &str| rest.is_empty() || rest.contains('/') || rest.ends_with(".sql");
    let end = rest.rfind('@').or_else(|| (!is_path(rest)).then_some(rest.len())).filter(|end| *end > 0)?;
    Some(user.len() + 1..user.len() + 1 + end)
}

#[cfg(test)]
mod tests {
    use super::{LOGINS, NAMED, PAIRS, PARTS, POSITIONS, SQLPLUS, StepBudget, is, runs_one};

    /// Whether a command in this text is one of them, and how many steps finding out takes.
    fn judged(text: &str) -> (bool, u64) {
        let mut steps = StepBudget::of(text.len());
        (runs_one(text, text.bytes().any(|byte| is(byte, PARTS)), &mut steps), steps.taken)
    }

    #[test]
    fn every_program_without_an_option_is_seen_where_a_command_begins() {
        let programs = POSITIONS
            .iter()
            .map(|(programs, ..)| *programs)
            .chain(PAIRS.iter().chain(NAMED).map(|(programs, _)| *programs))
            .chain([SQLPLUS, LOGINS]);
        for program in programs.flatten() {
            assert!(judged(&format!("{program} x")).0, "{program}");
        }
        for text in [
            "cd x; vault login",
            "cd x\n\n \r\n\tvault login",
            ";;(vault login",
            "A=1 vault login",
            "A=1 B=';' sudo /usr/bin/env C=2 vault login",
            "A=1;vault login",
            "vaults x; A=1 b; if vault login",
            "A=;A=;x y;sudo\nvault login",
            "x=$(vault login",
            "echo `vault login",
            "cat x | vault login",
            "cat x|vault login",
            "x || vault login",
            "x & vault login",
            "{ vault login",
            "! vault login",
        ] {
            assert!(judged(text).0, "{text}");
        }
        for text in ["", ";", "\n", "vaults x", "x vault login", "x; y vault login", "A=1", "A=1;", "vault", "vault=1 x", "a=b;c=d e"] {
            assert!(!judged(text).0, "{text}");
        }
    }

    #[test]
    fn where_a_command_may_begin_is_read_once() {
        for unit in [
            "\n",
            "\n ",
            "\r\n",
            "\n,",
            ";",
            ";(",
            ";\n",
            "A=;",
            "A=1 ",
            ";A=1 ",
            "sudo ",
            ";sudo ",
            "sudo\n",
            ";/a/sudo B=;",
            "|",
            "`",
            "$(",
            "& (",
            "A=`",
            "|sudo ",
            "A=$(",
            "{",
        ] {
            let text = unit.repeat(10_000);
            let (found, steps) = judged(&text);
            assert!(!found && steps <= 4 * text.len() as u64, "{unit:?}: {steps} steps for {} bytes", text.len());
        }
    }
}
