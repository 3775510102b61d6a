//! The catalog: which recordings there are, the line that `ls` shows of each, the names people gave them, and the traces in them. SQLite.
//!
//! The journal is a write-ahead log and `synchronous` is NORMAL: no transaction waits for the disk, and a power cut can
//! take the newest ones back but cannot damage the file. It is never checkpointed when a connection closes, because that
//! would sync at the end of every `longpole run`; SQLite does it by itself every [`JOURNAL_PAGES`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longpole_model::{Exit, Timestamp, TraceId};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, TransactionBehavior, params, params_from_iter};

use super::summary_row::SummaryRow;
use super::trace_ids::TraceIds;
use crate::error::StoreError;
use crate::files;
use crate::format::CATALOG_VERSION;
use crate::layout::directory_of;
use crate::name::RecordingName;

/// How long to wait for another longpole's transaction; each takes about a millisecond.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pages of the journal after which the next commit copies them into the file, and syncs: some forty recordings. The first who opens the
/// catalog reads the whole journal, so 1,000 pages, which SQLite would let gather, take longer to read than `true` to run.
const JOURNAL_PAGES: u32 = 128;

/// AUTOINCREMENT: SQLite keeps the largest number it ever gave, so a number that was removed is not given again.
const CREATE: &str = "
    CREATE TABLE recordings (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        state TEXT NOT NULL CHECK (state IN ('recording', 'sealed', 'killed')),
        directory TEXT NOT NULL,
        command_json TEXT NOT NULL,
        start_time_unix_nano INTEGER NOT NULL,
        wall_nanos INTEGER,
        exit_code INTEGER,
        exit_signal INTEGER,
        spans INTEGER NOT NULL,
        samples INTEGER NOT NULL,
        answer_json TEXT
    ) STRICT;";

/// Since version 2. A tag names one recording; a recording may have several.
const CREATE_TAGS: &str = "
    CREATE TABLE tags (
        tag TEXT PRIMARY KEY,
        number INTEGER NOT NULL REFERENCES recordings (number)
    ) STRICT;";

/// Since version 3. The traces by which a recording is found.
const CREATE_TRACES: &str = "
    CREATE TABLE traces (
        number INTEGER NOT NULL REFERENCES recordings (number),
        trace BLOB NOT NULL,
        PRIMARY KEY (number, trace)
    ) STRICT, WITHOUT ROWID;";

/// The same.
const CREATE_TRACES_INDEX: &str = "CREATE INDEX recordings_of_traces ON traces (trace, number);";

/// What longpole makes, and the version that made it first.
const MADE_HERE: [(u32, &str); 4] = [(1, CREATE), (2, CREATE_TAGS), (3, CREATE_TRACES), (3, CREATE_TRACES_INDEX)];

/// What SQLite makes itself: for AUTOINCREMENT, and where a user had it analyze the tables.
const MADE_BY_SQLITE: [&str; 3] = [
    "CREATE TABLE sqlite_sequence(name,seq)",
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
];

/// Bytes of a row. The longest that longpole writes is a command of 6 MiB, the most that Linux executes, of control characters, which JSON
/// writes with six bytes each.
const ROW_BYTES_MAX: i32 = 64 << 20;

const SELECT: &str = "SELECT number, state, directory, command_json, start_time_unix_nano, wall_nanos, exit_code, exit_signal,
    spans, samples, answer_json FROM recordings";

/// The largest number that longpole can have given.
const LARGEST: &str = "SELECT max(number) FROM recordings WHERE number BETWEEN 1 AND 4294967295";

/// What the catalog itself knows of a recording's state; whether its recorder lives, only the lock knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    /// Not sealed.
    Recording,
    /// Sealed by its recorder.
    Sealed,
    /// Sealed by another, after its recorder had died.
    Killed,
}

impl RowState {
    fn as_str(self) -> &'static str {
        match self {
            RowState::Recording => "recording",
            RowState::Sealed => "sealed",
            RowState::Killed => "killed",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [RowState::Recording, RowState::Sealed, RowState::Killed].into_iter().find(|state| state.as_str() == word)
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CatalogRow {
    pub(crate) name: RecordingName,
    pub(crate) state: RowState,
    pub(crate) summary: SummaryRow,
}

/// An open catalog.
#[derive(Debug)]
pub(crate) struct Catalog {
    path: PathBuf,
    /// Device and inode of the file, to know it again: SQLite goes on in one that was removed. No descriptor of our own is open to it,
    /// because closing that would let go of SQLite's locks.
    file: (u64, u64),
    connection: Mutex<Connection>,
}

/// Why work inside a transaction ended it.
pub(crate) enum Abort {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The work itself failed.
    Work(StoreError),
}

impl From<rusqlite::Error> for Abort {
    fn from(error: rusqlite::Error) -> Self {
        Abort::Sqlite(error)
    }
}

impl Catalog {
    /// Opens the catalog; makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let fail = |source: rusqlite::Error| catalog_error("open", path, source);
        // SQLite would make it by the umask, and gives the files beside it the mode it has.
        match files::create_new(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(StoreError::io("create", path)(error)),
            _ => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX).map_err(fail)?;
        // A file that came from elsewhere may bring a schema of its own; nothing of it is to run here.
        for (config, on) in [
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        ] {
            connection.set_db_config(config, on).map_err(fail)?;
        }
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(fail)?;
        connection.pragma_update(None, "wal_autocheckpoint", JOURNAL_PAGES).map_err(fail)?;
        // Checked before anything changes, the journal included: a file of this name can be another program's.
        let seen = connection.transaction().and_then(|transaction| FoundDatabase::of(&transaction)).map_err(fail)?;
        match seen.version_of_ours(path)? {
            0..CATALOG_VERSION => create(&mut connection, path)?,
            CATALOG_VERSION => {}
            found => return Err(newer(path, found)),
        }
        let file = files::identity(path).map_err(StoreError::io("open", path))?;
        Ok(Catalog { path: path.to_owned(), file, connection: Mutex::new(connection) })
    }

    /// An error where the catalog was removed or replaced since it was opened.
    pub(crate) fn check_is_there(&self) -> Result<(), StoreError> {
        if files::identity(&self.path).is_ok_and(|there| there == self.file) {
            Ok(())
        } else {
            Err(StoreError::Taken { what: "catalog", path: self.path.clone() })
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A thread that panicked in a transaction rolled it back; the connection is whole.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives out the next number and adds its row, unless `prepare` fails. `prepare` answers `None` where the number
    /// cannot be used (its directory is there already); then a number above `floor` is tried.
    ///
    /// No one sees the row before `prepare` is done: a row whose lock is free would be taken for a dead recorder's.
    pub(crate) fn create<T>(
        &self,
        summary: &SummaryRow,
        floor: impl Fn() -> Result<u32, StoreError>,
        mut prepare: impl FnMut(RecordingName) -> Result<Option<(PathBuf, T)>, StoreError>,
    ) -> Result<T, StoreError> {
        self.transaction("add a recording to", |transaction| {
            let mut number = next_number(transaction)?;
            loop {
                let name = RecordingName::new(number);
                if let Some((directory, prepared)) = prepare(name).map_err(Abort::Work)? {
                    insert(transaction, name, &directory, summary)?;
                    return Ok(prepared);
                }
                let above = number.max(floor().map_err(Abort::Work)?);
                let full = || StoreError::Inconsistent { reason: "every number is given".into() };
                number = above.checked_add(1).ok_or_else(|| Abort::Work(full()))?;
            }
        })
    }

    /// The row of a recording.
    pub(crate) fn row(&self, name: RecordingName) -> Result<Option<CatalogRow>, StoreError> {
        let found = self.connection().query_row(&format!("{SELECT} WHERE number = ?1"), [name.number()], raw_row).optional();
        found.map_err(|error| self.error("read", error))?.map(|row| self.decode(row)).transpose()
    }

    /// Whether a number has a row, whatever stands in it.
    pub(crate) fn has(&self, name: RecordingName) -> Result<bool, StoreError> {
        let found = self.connection().query_row("SELECT 1 FROM recordings WHERE number = ?1", [name.number()], |_| Ok(())).optional();
        Ok(found.map_err(|error| self.error("read", error))?.is_some())
    }

    /// Every row, the newest first; of one that makes no sense, why.
    pub(crate) fn rows(&self) -> Result<Vec<Result<CatalogRow, StoreError>>, StoreError> {
        let read = || -> rusqlite::Result<Vec<rusqlite::Result<RawRow>>> {
            let connection = self.connection();
            let mut question = connection.prepare(&format!("{SELECT} ORDER BY number DESC"))?;
            question.query_map([], |row| Ok(raw_row(row)))?.collect()
        };
        let rows = read().map_err(|error| self.error("read", error))?;
        Ok(rows.into_iter().map(|row| row.map_err(|error| self.error("read a row of", error)).and_then(|row| self.decode(row))).collect())
    }

    /// The newest recording.
    pub(crate) fn last(&self) -> Result<Option<RecordingName>, StoreError> {
        let newest = self.connection().query_row(LARGEST, [], |row| row.get::<_, Option<u32>>(0));
        Ok(newest.map_err(|error| self.error("read", error))?.map(RecordingName::new))
    }

    /// Says that the recording is sealed, how it went, and which traces are in it.
    pub(crate) fn seal(&self, name: RecordingName, state: RowState, summary: &SummaryRow, traces: &TraceIds) -> Result<(), StoreError> {
        let sql = format!("UPDATE recordings SET (state, {SUMMARY_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE number = ?");
        let values = [Value::from(state.as_str().to_owned())].into_iter().chain(summary_values(summary)).chain([name.number().into()]);
        let changed = self.transaction("change", |transaction| {
            let changed = transaction.execute(&sql, params_from_iter(values))?;
            if changed > 0 {
                transaction.execute("DELETE FROM traces WHERE number = ?1", [name.number()])?;
                let mut insert = transaction.prepare("INSERT INTO traces (number, trace) VALUES (?1, ?2)")?;
                for id in traces.iter() {
                    insert.execute(params![name.number(), id.bytes()])?;
                }
            }
            Ok(changed)
        })?;
        match changed {
            0 => Err(StoreError::NotFound { name, root: self.root() }),
            _ => Ok(()),
        }
    }

    /// Removes a row, with its traces and the tags that name it.
    pub(crate) fn remove(&self, name: RecordingName) -> Result<(), StoreError> {
        self.transaction("remove a recording from", |transaction| {
            transaction.execute("DELETE FROM tags WHERE number = ?1", [name.number()])?;
            transaction.execute("DELETE FROM traces WHERE number = ?1", [name.number()])?;
            Ok(transaction.execute("DELETE FROM recordings WHERE number = ?1", [name.number()])?)
        })?;
        Ok(())
    }

    /// The newest recordings with this trace.
    pub(crate) fn with_trace(&self, id: TraceId, limit: u32) -> Result<Vec<RecordingName>, StoreError> {
        let read = || -> rusqlite::Result<Vec<RecordingName>> {
            let connection = self.connection();
            let mut question = connection.prepare("SELECT number FROM traces WHERE trace = ?1 ORDER BY number DESC LIMIT ?2")?;
            question.query_map(params![id.bytes(), limit], |row| row.get(0).map(RecordingName::new))?.collect()
        };
        read().map_err(|error| self.error("read", error))
    }

    /// The traces of a recording, by their ids.
    pub(crate) fn traces_of(&self, name: RecordingName, limit: u32) -> Result<Vec<TraceId>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Vec<u8>>> {
            let connection = self.connection();
            let mut question = connection.prepare("SELECT trace FROM traces WHERE number = ?1 ORDER BY trace LIMIT ?2")?;
            question.query_map(params![name.number(), limit], |row| row.get(0))?.collect()
        };
        let ids = read().map_err(|error| self.error("read", error))?;
        Ok(ids.iter().filter_map(|id| TraceId::from_slice(id)).collect())
    }

    /// Makes the tag name this recording, and says which one it named before.
    pub(crate) fn tag(&self, name: RecordingName, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        self.transaction("tag a recording in", |transaction| {
            let before = tagged(transaction, tag)?;
            transaction.execute("INSERT OR REPLACE INTO tags (tag, number) VALUES (?1, ?2)", params![tag, name.number()])?;
            Ok(before)
        })
    }

    /// Takes a tag away, and says what it named.
    pub(crate) fn untag(&self, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        self.transaction("remove a tag from", |transaction| {
            let before = tagged(transaction, tag)?;
            transaction.execute("DELETE FROM tags WHERE tag = ?1", [tag])?;
            Ok(before)
        })
    }

    /// The recording that a tag names.
    pub(crate) fn tagged(&self, tag: &str) -> Result<Option<RecordingName>, StoreError> {
        tagged(&self.connection(), tag).map_err(|error| self.error("read", error))
    }

    /// Every tag with its recording, in the order of the alphabet.
    pub(crate) fn tags(&self) -> Result<Vec<(String, RecordingName)>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(String, RecordingName)>> {
            let connection = self.connection();
            let mut question = connection.prepare("SELECT tag, number FROM tags ORDER BY tag")?;
            question
                .query_map([], |row| Ok((row.get(0)?, RecordingName::new(row.get(1)?))))?
                .filter(|row| !row.as_ref().is_err_and(is_of_value))
                .collect()
        };
        read().map_err(|error| self.error("read", error))
    }

    /// Runs `work` in a transaction that holds the write lock from its beginning, so that it cannot fail half-way because
    /// another wrote meanwhile.
    fn transaction<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Abort>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let sqlite = |error| self.error(action, error);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
        let value = match work(&transaction) {
            Ok(value) => value,
            Err(Abort::Sqlite(error)) => return Err(sqlite(error)),
            Err(Abort::Work(error)) => return Err(error),
        };
        transaction.commit().map_err(sqlite)?;
        Ok(value)
    }

    fn error(&self, action: &'static str, source: rusqlite::Error) -> StoreError {
        catalog_error(action, &self.path, source)
    }

    fn root(&self) -> PathBuf {
        self.path.parent().unwrap_or(&self.path).to_owned()
    }

    fn decode(&self, row: RawRow) -> Result<CatalogRow, StoreError> {
        let number = row.number;
        let corrupt = |what: &str| StoreError::Corrupt { path: self.path.clone(), reason: format!("{what} of r{number} is not valid") };
        let name = u32::try_from(number).map(RecordingName::new).map_err(|_| corrupt("the number"))?;
        let command = serde_json::from_str(&row.command_json).map_err(|_| corrupt("the command"))?;
        let directory = directory_of(name);
        if Path::new(&row.directory) != directory {
            return Err(corrupt(&format!("the directory {:?}, which is not {},", row.directory, directory.display())));
        }
        let exit = match (row.exit_code, row.exit_signal) {
            (Some(code), _) => Some(Exit::Code(code)),
            (None, Some(signal)) => Some(Exit::Signal(signal)),
            (None, None) => None,
        };
        Ok(CatalogRow {
            name,
            state: RowState::from_word(&row.state).ok_or_else(|| corrupt("the state"))?,
            summary: SummaryRow {
                command,
                start: Timestamp(row.start),
                wall_nanos: row.wall_nanos.map(i64::cast_unsigned),
                exit,
                spans: row.spans.cast_unsigned(),
                samples: row.samples.cast_unsigned(),
                answer_json: row.answer_json,
            },
        })
    }
}

fn catalog_error(action: &'static str, path: &Path, source: rusqlite::Error) -> StoreError {
    StoreError::Catalog { action, path: path.to_owned(), source: Box::new(source) }
}

fn newer(path: &Path, found: u32) -> StoreError {
    StoreError::Newer { what: "catalog", path: path.to_owned(), found, known: CATALOG_VERSION }
}

/// What tells a catalog of ours from another database.
struct FoundDatabase {
    version: u32,
    /// Zero where nobody has set it, as longpole does not.
    application: i32,
    tables: u32,
    has_recordings: bool,
    /// What longpole has not made, such as a table of ours with a column that SQLite computes: what it computes can take any memory.
    stranger: Option<String>,
}

impl FoundDatabase {
    /// In a transaction, so that nobody else makes the tables in between.
    fn of(transaction: &rusqlite::Transaction<'_>) -> rusqlite::Result<Self> {
        let mut seen = FoundDatabase {
            version: transaction.pragma_query_value(None, "user_version", |row| row.get(0))?,
            application: transaction.pragma_query_value(None, "application_id", |row| row.get(0))?,
            tables: 0,
            has_recordings: false,
            stranger: None,
        };
        let words = |text: &str| text.trim().trim_end_matches(';').split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let known: Vec<Vec<String>> = MADE_HERE.into_iter().map(|(_, made)| made).chain(MADE_BY_SQLITE).map(words).collect();
        let mut question = transaction.prepare("SELECT type, name, sql FROM sqlite_master")?;
        let mut rows = question.query([])?;
        while let Some(row) = rows.next()? {
            let (kind, name) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
            seen.tables += 1;
            seen.has_recordings |= kind == "table" && name == "recordings";
            // Indexes of primary keys have no text.
            let text = row.get_ref(2)?.as_str_or_null()?;
            if seen.stranger.is_none() && text.is_some_and(|text| !known.contains(&words(text))) {
                seen.stranger = Some(name.to_owned());
            }
        }
        Ok(seen)
    }

    fn version_of_ours(&self, path: &Path) -> Result<u32, StoreError> {
        // What a newer longpole has in it is not known.
        let is_newer = self.version > CATALOG_VERSION;
        let is_ours = is_newer || self.application == 0 && (self.version > 0) == self.has_recordings;
        let has_others = self.version == 0 && self.tables > 0;
        let reason = match &self.stranger {
            _ if !is_ours || has_others => "it is the database of another program, not a catalog of longpole".to_owned(),
            Some(name) if !is_newer => format!("its {name:?} differs from what longpole creates, and reading it could have any effect"),
            _ => return Ok(self.version),
        };
        Err(StoreError::NotOurs { path: path.to_owned(), reason, remedy: "name another store: --store DIR".to_owned() })
    }
}

/// Makes the tables, or those that an older version lacks, unless another longpole was quicker.
fn create(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source: rusqlite::Error| catalog_error("create", path, source);
    // On a file system without shared memory this stays a rollback journal, which works as well. While another longpole
    // does the same SQLite answers "busy" without waiting; then that one has switched it.
    match connection.pragma_update(None, "journal_mode", "WAL") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        switched => switched.map_err(fail)?,
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let found = FoundDatabase::of(&transaction).map_err(fail)?.version_of_ours(path)?;
    if found > CATALOG_VERSION {
        return Err(newer(path, found));
    }
    for (since, made) in MADE_HERE {
        if found < since {
            transaction.execute_batch(made).map_err(fail)?;
        }
    }
    transaction.pragma_update(None, "user_version", CATALOG_VERSION).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// Whether a value is not what longpole writes: damage of this row, and not of the file.
fn is_of_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..))
}

fn tagged(connection: &Connection, tag: &str) -> rusqlite::Result<Option<RecordingName>> {
    connection.query_row("SELECT number FROM tags WHERE tag = ?1", [tag], |row| row.get(0).map(RecordingName::new)).optional()
}

/// One more than the largest number that was ever given.
fn next_number(connection: &Connection) -> rusqlite::Result<u32> {
    let given = connection.query_row("SELECT seq FROM sqlite_sequence WHERE name = 'recordings'", [], |row| row.get::<_, u32>(0));
    match given.optional() {
        // A number that longpole never gave.
        Err(error) if is_of_value(&error) => {
            Ok(connection.query_row(LARGEST, [], |row| row.get::<_, Option<u32>>(0))?.unwrap_or(0).saturating_add(1))
        }
        given => Ok(given?.unwrap_or(0).saturating_add(1)),
    }
}

/// The columns that a [`SummaryRow`] fills, in the order of [`summary_values`].
const SUMMARY_COLUMNS: &str = "command_json, start_time_unix_nano, wall_nanos, exit_code, exit_signal, spans, samples, answer_json";

fn summary_values(summary: &SummaryRow) -> [Value; 8] {
    let (code, signal) = match summary.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    [
        serde_json::Value::from(summary.command.clone()).to_string().into(),
        summary.start.unix_nanos().into(),
        summary.wall_nanos.map(u64::cast_signed).into(),
        code.into(),
        signal.into(),
        summary.spans.cast_signed().into(),
        summary.samples.cast_signed().into(),
        summary.answer_json.clone().into(),
    ]
}

fn insert(connection: &Connection, name: RecordingName, directory: &Path, summary: &SummaryRow) -> rusqlite::Result<()> {
    let sql =
        format!("INSERT INTO recordings (number, state, directory, {SUMMARY_COLUMNS}) VALUES (?, 'recording', ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    let row = [Value::from(name.number()), Value::from(directory.to_string_lossy().into_owned())];
    connection.execute(&sql, params_from_iter(row.into_iter().chain(summary_values(summary))))?;
    Ok(())
}

/// A row as SQLite has it.
struct RawRow {
    number: i64,
    state: String,
    directory: String,
    command_json: String,
    start: i64,
    wall_nanos: Option<i64>,
    exit_code: Option<i32>,
    exit_signal: Option<i32>,
    spans: i64,
    samples: i64,
    answer_json: Option<String>,
}

fn raw_row(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok(RawRow {
        number: row.get(0)?,
        state: row.get(1)?,
        directory: row.get(2)?,
        command_json: row.get(3)?,
        start: row.get(4)?,
        wall_nanos: row.get(5)?,
        exit_code: row.get(6)?,
        exit_signal: row.get(7)?,
        spans: row.get(8)?,
        samples: row.get(9)?,
        answer_json: row.get(10)?,
    })
}
