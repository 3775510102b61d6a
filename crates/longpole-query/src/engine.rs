//! DataFusion within bounds: which tables there are, how much memory, how many threads, how long.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::MemorySchemaProvider;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};

use crate::checked_sum::checked_sum;
use crate::error::{self, MemoryUse, QueryError};
use crate::limits::Limits;
use crate::schema::{VIEWS, View};
use crate::statement;

/// Threads of the engine, and partitions of a plan. Recordings are small; a command may be running beside.
const THREADS: usize = 2;

/// Name of all of them.
pub const THREAD_NAME: &str = "longpole-query";

/// Threads that wait for files.
const FILE_THREADS: usize = 4;

/// Planning walks a plan recursively, and so does dropping it, by up to 50 KB for each step of the deepest statement
/// ([`STATEMENT_DEPTH_MAX`](crate::limits::STATEMENT_DEPTH_MAX)). Only what is touched takes memory.
const STACK_BYTES: usize = 256 << 20;

/// How often the caller looks whether a statement takes too long or too much.
const LOOK: Duration = Duration::from_millis(5);

const CATALOG: &str = "longpole";

/// The schema of the tables that need no prefix.
const SCHEMA: &str = "recordings";

/// The files of one recording.
pub(crate) struct Source {
    /// Its name.
    pub(crate) recording: String,
    /// Table and file.
    pub(crate) files: Vec<(&'static str, std::path::PathBuf)>,
}

/// What the engine answered.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

/// Runs a statement on threads of its own, so that it works and ends wherever it is called from.
pub(crate) fn run(sources: Vec<Source>, statement: &str, limits: &Limits) -> Result<Answer, QueryError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(FILE_THREADS)
        .thread_name(THREAD_NAME)
        .thread_stack_size(STACK_BYTES)
        // A panic of the engine over a damaged file comes back as an error.
        .on_thread_start(longpole_store::quiet_thread)
        .enable_time()
        .build()
        .map_err(|error| QueryError::Engine { message: format!("start its threads: {error}") })?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let (statement, task_limits) = (statement.to_owned(), limits.clone());
    let task = runtime.spawn(async move { answer(sources, &statement, &task_limits).await });
    runtime.spawn(async move {
        let answered = task.await.unwrap_or_else(|end| Err(QueryError::Engine { message: words_of(end) }));
        // The receiver is gone where the time was up.
        let _ = sender.send(answered);
    });
    let answered = wait(&receiver, limits);
    // Whatever still runs is dropped at its next pause; nobody waits for it.
    runtime.shutdown_background();
    answered
}

/// Waits for the answer, as long as it may take, and while the process grows no more than it may. The engine counts what its
/// operators hold; a value, a list or a plan that grows to no end is in nobody's count but the system's.
fn wait(receiver: &mpsc::Receiver<Result<Answer, QueryError>>, limits: &Limits) -> Result<Answer, QueryError> {
    let begun = Instant::now();
    let growth_max = limits.memory_bytes.saturating_mul(2);
    let resident_max = resident_bytes().map(|bytes| bytes.saturating_add(growth_max));
    loop {
        let Some(left) = limits.timeout.checked_sub(begun.elapsed()) else { return Err(QueryError::Timeout { timeout: limits.timeout }) };
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(answered) => return answered,
            Err(RecvTimeoutError::Disconnected) => return Err(QueryError::Engine { message: "the engine gave up".into() }),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if resident_max.zip(resident_bytes()).is_some_and(|(max, now)| now > max) {
            return Err(QueryError::Memory { memory_bytes: growth_max, what: MemoryUse::Process });
        }
    }
}

/// Memory of this process that is in RAM; `None` where the system does not tell it as Linux does.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// How the task ended that gave no answer: by a panic of the engine.
fn words_of(end: tokio::task::JoinError) -> String {
    let panic = end.try_into_panic().unwrap_or_else(|_| Box::new("it was cancelled"));
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the engine failed: {}", words.unwrap_or("it does not say why"))
}

async fn answer(sources: Vec<Source>, statement: &str, limits: &Limits) -> Result<Answer, QueryError> {
    let statement = statement::parse(statement)?;
    let context = context(&sources, limits).await.map_err(|error| error::running(&error, limits.memory_bytes))?;
    let state = context.state();
    let references = state.resolve_table_references(&statement).map_err(|error| error::planning(&error))?;
    for reference in references {
        if !is_known(&context, &reference) {
            return Err(QueryError::Table { table: reference.to_string(), tables: tables(&sources) });
        }
    }
    let plan = state.statement_to_plan(statement).await.map_err(|error| error::planning(&error))?;
    // `statement` has checked the statement; this checks the plan, which is what runs.
    let reads_only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads_only.verify_plan(&plan).map_err(|error| error::planning(&error))?;

    let run = async {
        let describes = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_));
        let mut frame = context.execute_logical_plan(plan).await?;
        if !describes {
            // One more than the limit shows whether there are more.
            frame = frame.limit(0, Some(limits.rows.saturating_add(1)))?;
        }
        let schema = Arc::clone(frame.schema().inner());
        Ok(Answer { schema, batches: frame.collect().await? })
    };
    let answer: Result<Answer, DataFusionError> = run.await;
    let answer = answer.map_err(|error| match error.find_root() {
        // The optimiser finds more errors of the statement.
        DataFusionError::Plan(_) | DataFusionError::SchemaError(..) | DataFusionError::NotImplemented(_) => error::planning(&error),
        _ => error::running(&error, limits.memory_bytes),
    })?;
    // The pool counts what operators hold, not what they have handed out.
    let bytes: usize = answer.batches.iter().map(RecordBatch::get_array_memory_size).sum();
    if bytes > limits.memory_bytes {
        return Err(QueryError::Memory { memory_bytes: limits.memory_bytes, what: MemoryUse::Rows });
    }
    Ok(answer)
}

/// Whether it is a table, a SQL view or a function that makes rows. An error means that its schema is unknown.
fn is_known(context: &SessionContext, reference: &TableReference) -> bool {
    reference.schema() == Some("information_schema")
        || context.state().table_functions().contains_key(reference.table())
        || context.table_exist(reference.clone()).unwrap_or(false)
}

/// Names of all tables, then of all views.
fn tables(sources: &[Source]) -> String {
    error::list(all_tables(sources).into_iter().chain(views(sources).map(|view| view.name)).map(str::to_owned))
}

/// The tables that some of the recordings have: an older one may be without those that came later.
fn all_tables(sources: &[Source]) -> Vec<&'static str> {
    let most = sources.iter().max_by_key(|source| source.files.len());
    most.map(|source| source.files.iter().map(|(table, _)| *table).collect()).unwrap_or_default()
}

/// The views whose tables there are.
fn views(sources: &[Source]) -> impl Iterator<Item = &'static View> {
    let tables = all_tables(sources);
    VIEWS.iter().filter(move |view| view.needs.iter().all(|table| tables.contains(table)))
}

/// A session that knows these recordings, and nothing else.
async fn context(sources: &[Source], limits: &Limits) -> Result<SessionContext, DataFusionError> {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(limits.memory_bytes)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()?;
    let config =
        SessionConfig::new().with_target_partitions(THREADS).with_information_schema(true).with_default_catalog_and_schema(CATALOG, SCHEMA);
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_udaf(checked_sum());
    let catalog = context.catalog(CATALOG).ok_or_else(|| DataFusionError::Internal("the catalog is missing".into()))?;
    for source in sources {
        catalog.register_schema(&source.recording, Arc::new(MemorySchemaProvider::new()))?;
        for (table, path) in &source.files {
            let file = Arc::new(file_table(&context, path).await?);
            if let [_] = sources {
                context.register_table(*table, Arc::clone(&file) as _)?;
            }
            context.register_table(TableReference::partial(source.recording.as_str(), *table), file)?;
        }
    }
    if let [_, _, ..] = sources {
        for table in all_tables(sources) {
            let having = sources.iter().filter(|it| it.files.iter().any(|(name, _)| *name == table));
            let parts = having.map(|it| format!("SELECT '{0}' AS recording, * FROM {0}.{table}", it.recording));
            create_view(&context, table, &parts.collect::<Vec<_>>().join(" UNION ALL ")).await?;
        }
    }
    for view in views(sources) {
        create_view(&context, view.name, &(view.sql)(sources.len() > 1)).await?;
    }
    Ok(context)
}

async fn create_view(context: &SessionContext, name: &str, sql: &str) -> Result<(), DataFusionError> {
    context.sql(&format!("CREATE VIEW {name} AS {sql}")).await?;
    Ok(())
}

/// A table that is a scan of one Parquet file.
async fn file_table(context: &SessionContext, path: &Path) -> Result<ListingTable, DataFusionError> {
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    let config = ListingTableConfig::new(ListingTableUrl::parse(file_url(&std::path::absolute(path)?))?).with_listing_options(options);
    ListingTable::try_new(config.infer_schema(&context.state()).await?)
}

/// An absolute path as a URL: in a plain path the engine would take `*`, `?` and `[` for patterns.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::file_url;

    #[test]
    fn a_path_is_a_url_without_patterns() {
        assert_eq!(file_url("/a b/[x]*?/ü%.parquet".as_ref()), "file:///a%20b/%5Bx%5D%2A%3F/%C3%BC%25.parquet");
    }
}
