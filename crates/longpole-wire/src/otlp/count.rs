//! How much a request of another signal holds. Metrics and logs are accepted, so that an SDK that sends all three is not
//! refused, and counted as a loss, so that nobody takes them for kept.

use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::schema;
use crate::error::DecodeError;
use crate::json::{self, Context, Json};
use crate::limits::Limits;

/// Data points in an `ExportMetricsServiceRequest`. The inside of a data point is not read.
///
/// # Errors
///
/// The request is not well formed.
pub fn count_metrics(bytes: &[u8], json: bool) -> Result<u64, DecodeError> {
    let limits = Limits::default();
    if json { Ok(json::parse::<Metrics>(bytes, &limits)?.0) } else { Ok(schema::survey(bytes, &schema::METRICS, &limits)?.counted) }
}

/// Log records in an `ExportLogsServiceRequest`. The inside of a log record is not read.
///
/// # Errors
///
/// The request is not well formed.
pub fn count_logs(bytes: &[u8], json: bool) -> Result<u64, DecodeError> {
    let limits = Limits::default();
    if json { Ok(json::parse::<Logs>(bytes, &limits)?.0) } else { Ok(schema::survey(bytes, &schema::LOGS, &limits)?.counted) }
}

/// Declares a message for a reader that only counts the items in some of its members.
macro_rules! total {
    ($type:ident: $($camel:literal $(| $snake:literal)? => $inner:ty),+) => {
        #[derive(Default)]
        struct $type(u64);

        impl<'de> Json<'de> for $type {
            const EXPECTED: &'static str = "an object";

            fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
                let mut total = 0;
                while let Some(name) = json::name(&mut object, context)? {
                    match &*name {
                        $($camel $(| $snake)? => total += json::member::<$inner, A>(&mut object, context)?.0,)+
                        _ => {
                            object.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok($type(total))
            }
        }

        impl From<$type> for u64 {
            fn from(total: $type) -> u64 {
                total.0
            }
        }
    };
}

/// A list of such messages.
struct Sum<T>(u64, PhantomData<T>);

impl<T> Default for Sum<T> {
    fn default() -> Self {
        Sum(0, PhantomData)
    }
}

impl<'de, T: Json<'de> + Into<u64>> Json<'de> for Sum<T> {
    const EXPECTED: &'static str = "a list";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut sum = Sum::default();
        while let Some(element) = json::element::<T, A>(&mut list, context)? {
            sum.0 += element.into();
        }
        Ok(sum)
    }
}

total!(Metrics: "resourceMetrics" | "resource_metrics" => Sum<ResourceMetrics>);
total!(ResourceMetrics: "scopeMetrics" | "scope_metrics" => Sum<ScopeMetrics>);
total!(ScopeMetrics: "metrics" => Sum<Metric>);
total!(Metric:
    "gauge" => DataPoints,
    "sum" => DataPoints,
    "histogram" => DataPoints,
    "exponentialHistogram" | "exponential_histogram" => DataPoints,
    "summary" => DataPoints);
total!(DataPoints: "dataPoints" | "data_points" => Items);

total!(Logs: "resourceLogs" | "resource_logs" => Sum<ResourceLogs>);
total!(ResourceLogs: "scopeLogs" | "scope_logs" => Sum<ScopeLogs>);
total!(ScopeLogs: "logRecords" | "log_records" => Items);

/// The length of a list.
#[derive(Default)]
struct Items(u64);

impl<'de> Json<'de> for Items {
    const EXPECTED: &'static str = "a list";

    fn list<A: SeqAccess<'de>>(mut list: A, _context: Context<'_>) -> Result<Self, A::Error> {
        let mut items = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            items += 1;
        }
        Ok(Items(items))
    }
}
