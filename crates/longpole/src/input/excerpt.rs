//! The part of a recording that a user chose: a range of time, a thread, or both.

use std::time::Duration;

use anyhow::Result;
use longpole_analysis::Report;
use longpole_analysis::report::Excerpt;
use longpole_model::Nanos;
use longpole_model::units::TimeUnit;

use crate::args::{ExcerptArguments, RangeArguments};
use crate::failure::{Failure, Kind};
use crate::next_command::{own_name, quoted};

/// The range; `None` for the whole run.
pub(crate) fn range(arguments: &RangeArguments, report: &Report) -> Result<Option<(Nanos, Nanos)>> {
    let nanos = |time: Duration| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let range = report.range(arguments.from.map(nanos), arguments.to.map(nanos));
    range.map_err(|(from, to)| {
        let unit = TimeUnit::of(from.0);
        let message = if to == report.wall() {
            format!("--from {} must be earlier than the end ({})", unit.show(from.0), unit.show(to.0))
        } else {
            format!("--from {} must be earlier than --to {}", unit.show(from.0), unit.show(to.0))
        };
        Failure::new(Kind::Usage, message).into()
    })
}

/// The range and the thread.
pub(crate) fn excerpt(arguments: &ExcerptArguments, recording: &str, report: &Report) -> Result<Excerpt> {
    if let Some(tid) = arguments.thread.filter(|&tid| !report.has_thread(tid)) {
        let hint = format!("{} threads {} --limit 0 lists them", own_name(), quoted(recording));
        return Err(Failure::new(Kind::NotFound, format!("{recording} has no thread {tid}")).hint(hint).into());
    }
    Ok(Excerpt { range: range(&arguments.range, report)?, tid: arguments.thread })
}
