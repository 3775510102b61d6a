//! Shares in whole percent.

/// Whole percent of `whole`, rounded, 0 of nothing.
pub(crate) fn of(part: i64, whole: i64) -> i64 {
    let whole = i128::from(whole.max(1));
    i64::try_from((i128::from(part) * 100 + whole / 2) / whole).unwrap_or(i64::MAX)
}
