//! What is missing.

use arrow_array::ArrayRef;
use longpole_model::{Loss, LossKind};

use super::batch::{Batch, Rows, text_at, unsigned_at, word};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "losses",
    "One row per kind of missing data and reason.",
    &[
        column("kind", Kind::Text, "Kind, such as `samples_lost` or `recorder_killed`."),
        column("count", Kind::Int, "Number of missing items."),
        optional("detail", Kind::Text, "Reason, and remedy."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[Loss]) -> Vec<ArrayRef> {
    vec![
        array::text(rows.iter().map(|loss| loss.kind.as_str())),
        array::unsigned(rows.iter().map(|loss| loss.count)),
        array::text_unless_empty(rows.iter().map(|loss| loss.detail.as_str())),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, losses: &mut Vec<Loss>) -> Rows<()> {
    let (kind, count, detail) = (batch.text("kind")?, batch.int("count")?, batch.text("detail")?);
    for row in batch.rows() {
        losses.push(Loss {
            kind: word("kind", kind.value(row), LossKind::from_code)?,
            count: unsigned_at(count, row).unwrap_or_default(),
            detail: text_at(detail, row),
        });
    }
    Ok(())
}
