//! `sum` of whole numbers that is right or an error. The engine's own adds them up in 64 bits and wraps: twice the largest number is -2.
//!
//! ```text
//! 64 bits ──► added up in 128 bits ──► handed from part to part as DECIMAL(38, 0) ──► 64 bits again, or an error
//! ```
//!
//! No number of rows that a recording can have fills 128 bits. Sums of everything else are the engine's own.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};

/// What sums are handed on as.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// The function, under the name of the engine's own.
pub(crate) fn checked_sum() -> AggregateUDF {
    AggregateUDF::from(CheckedSum { usual: sum_udaf() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    usual: Arc<AggregateUDF>,
}

fn is_whole(kind: &DataType) -> bool {
    matches!(kind, DataType::Int64 | DataType::UInt64)
}

/// As if it were a sum of decimals.
fn wide_field(field: &Field) -> FieldRef {
    Arc::new(field.clone().with_data_type(WIDE))
}

fn widened(args: AccumulatorArgs<'_>) -> AccumulatorArgs<'_> {
    AccumulatorArgs { return_field: wide_field(&args.return_field), ..args }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.usual.name()
    }

    fn signature(&self) -> &Signature {
        self.usual.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.usual.return_type(arg_types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let args =
            if is_whole(args.return_type()) { StateFieldsArgs { return_field: wide_field(&args.return_field), ..args } } else { args };
        self.usual.inner().state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let kind = args.return_type().clone();
        match (is_whole(&kind), args.is_distinct) {
            (false, _) => self.usual.inner().accumulator(args),
            (true, false) => Ok(Box::new(Sum { kind, sum: 0, count: 0 })),
            (true, true) => Ok(Box::new(Wide { kind, inner: self.usual.inner().accumulator(widened(args))? })),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.usual.inner().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let kind = args.return_type().clone();
        if !is_whole(&kind) {
            return self.usual.inner().create_groups_accumulator(args);
        }
        let wide = widened(AccumulatorArgs { return_field: Arc::clone(&args.return_field), ..args });
        let wide = self.usual.inner().create_groups_accumulator(wide)?;
        let usual = self.usual.inner().create_groups_accumulator(args)?;
        Ok(Box::new(Groups { kind, usual: Some(usual), bound: 0, wide }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let kind = args.return_type().clone();
        match (&kind, args.is_distinct) {
            (DataType::Int64, true) => Ok(Box::new(SlidingDistinct::default())),
            (DataType::Int64 | DataType::UInt64, false) => Ok(Box::new(Sum { kind, sum: 0, count: 0 })),
            // The engine has none for distinct numbers without a sign.
            _ => self.usual.inner().create_sliding_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.usual.inner().reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.usual.inner().order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.usual.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.usual.inner().set_monotonicity(data_type)
    }

    /// `sum(x + 1)` as `sum(x) + count(x)` would be added up in 64 bits.
    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        match literal {
            Expr::Literal(value, _) if !value.data_type().is_integer() => {
                self.usual.inner().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
            }
            _ => Ok(None),
        }
    }

    /// Sums in the statistics of a file may have been added up in 64 bits.
    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        if is_whole(args.return_type) { None } else { self.usual.inner().value_from_stats(args) }
    }
}

fn too_large(sum: i128, kind: &DataType) -> DataFusionError {
    let max = if *kind == DataType::UInt64 { u64::MAX.into() } else { i128::from(i64::MAX) };
    let bound = if sum < 0 { -max - 1 } else { max };
    DataFusionError::Execution(format!("a sum is {sum}, beyond the 64-bit limit of {bound}; add up CAST(… AS DECIMAL(38, 0)) instead"))
}

fn internal(what: &str, kind: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("{what} of {kind} in a sum of whole numbers"))
}

/// A sum in 64 bits again.
fn narrowed(sum: Option<i128>, kind: &DataType) -> Result<ScalarValue> {
    let fails = |sum| too_large(sum, kind);
    Ok(match kind {
        DataType::UInt64 => ScalarValue::UInt64(sum.map(|sum| u64::try_from(sum).map_err(|_| fails(sum))).transpose()?),
        _ => ScalarValue::Int64(sum.map(|sum| i64::try_from(sum).map_err(|_| fails(sum))).transpose()?),
    })
}

/// Many of them.
fn all_narrowed(sums: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    let fails = |sum| ArrowError::from_external_error(Box::new(too_large(sum, kind)));
    let sums = sums.as_primitive_opt::<Decimal128Type>().ok_or_else(|| internal("sums", sums.data_type()))?;
    Ok(match kind {
        DataType::UInt64 => Arc::new(sums.try_unary::<_, UInt64Type, ArrowError>(|sum| u64::try_from(sum).map_err(|_| fails(sum)))?),
        _ => Arc::new(sums.try_unary::<_, Int64Type, ArrowError>(|sum| i64::try_from(sum).map_err(|_| fails(sum)))?),
    })
}

/// Numbers as decimals.
fn all_widened(values: &ArrayRef) -> Result<ArrayRef> {
    let wide: PrimitiveArray<Decimal128Type> = match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().unary(i128::from),
        DataType::UInt64 => values.as_primitive::<UInt64Type>().unary(i128::from),
        kind => return Err(internal("values", kind)),
    };
    Ok(Arc::new(wide.with_data_type(WIDE)))
}

/// The only argument, or the only part of a state.
fn first(values: &[ArrayRef]) -> Result<&ArrayRef> {
    values.first().ok_or_else(|| internal("no values", &DataType::Null))
}

/// What the values that are there sum up to, and how many they are.
fn sum_of<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> (i128, u64)
where
    i128: From<T::Native>,
{
    let add = |values: &[T::Native]| values.iter().fold(0_i128, |sum, &value| sum.wrapping_add(i128::from(value)));
    let count = (values.len() - values.null_count()) as u64;
    match values.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => (add(values.values()), count),
        Some(nulls) => (nulls.valid_slices().map(|(start, end)| add(&values.values()[start..end])).sum(), count),
    }
}

fn sum_of_any(values: &ArrayRef) -> Result<(i128, u64)> {
    match values.data_type() {
        DataType::Int64 => Ok(sum_of(values.as_primitive::<Int64Type>())),
        DataType::UInt64 => Ok(sum_of(values.as_primitive::<UInt64Type>())),
        DataType::Decimal128(..) => Ok(sum_of(values.as_primitive::<Decimal128Type>())),
        kind => Err(internal("values", kind)),
    }
}

/// One sum, of all rows or of those in a window that moves on.
#[derive(Debug)]
struct Sum {
    kind: DataType,
    sum: i128,
    /// Values in it, and sums of values that were handed on.
    count: u64,
}

impl Sum {
    fn value(&self) -> Option<i128> {
        (self.count > 0).then_some(self.sum)
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = sum_of_any(first(values)?)?;
        self.sum += sum;
        self.count += count;
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = sum_of_any(first(values)?)?;
        self.sum -= sum;
        self.count -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.value(), 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        narrowed(self.value(), &self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The engine's own sum of distinct decimals, for whole numbers.
#[derive(Debug)]
struct Wide {
    kind: DataType,
    inner: Box<dyn Accumulator>,
}

impl Accumulator for Wide {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&[all_widened(first(values)?)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.inner.evaluate()? {
            ScalarValue::Decimal128(sum, ..) => narrowed(sum, &self.kind),
            other => Err(internal("a sum", &other.data_type())),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// One sum for each group. The engine's own sums of 64 bits are right as long as all that was added up anywhere would have room in them.
/// From there on they are the engine's own sums of decimals.
struct Groups {
    kind: DataType,
    /// While it is right.
    usual: Option<Box<dyn GroupsAccumulator>>,
    /// What all values without their signs sum up to, at most.
    bound: u128,
    wide: Box<dyn GroupsAccumulator>,
}

impl Groups {
    /// The engine's own sums, if these values leave them right.
    fn usual_with(&mut self, values: &ArrayRef) -> Result<Option<&mut Box<dyn GroupsAccumulator>>> {
        let Some(usual) = &mut self.usual else { return Ok(None) };
        let max = if self.kind == DataType::UInt64 { u64::MAX.into() } else { i64::MAX as u128 };
        self.bound = self.bound.saturating_add(magnitude_of_any(values)?.saturating_mul(values.len() as u128));
        if self.bound > max {
            let sums = usual.state(EmitTo::All)?;
            let sums = all_widened(first(&sums)?)?;
            let groups: Vec<usize> = (0..sums.len()).collect();
            self.wide.merge_batch(&[sums], &groups, groups.len())?;
            self.usual = None;
        }
        Ok(self.usual.as_mut())
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, count: usize) -> Result<()> {
        match self.usual_with(first(values)?)? {
            Some(usual) => usual.update_batch(values, groups, filter, count),
            None => self.wide.update_batch(&[all_widened(first(values)?)?], groups, filter, count),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        let kind = self.kind.clone();
        match self.usual_with(first(states)?)? {
            Some(usual) => usual.merge_batch(&[all_narrowed(first(states)?, &kind)?], groups, count),
            None => self.wide.merge_batch(states, groups, count),
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        match &mut self.usual {
            Some(usual) => usual.evaluate(emit_to),
            None => all_narrowed(&self.wide.evaluate(emit_to)?, &self.kind),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        match &mut self.usual {
            Some(usual) => usual.state(emit_to)?.iter().map(all_widened).collect(),
            None => self.wide.state(emit_to),
        }
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.wide.convert_to_state(&[all_widened(first(values)?)?], filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.usual.as_ref().map_or(0, |usual| usual.size()) + self.wide.size()
    }
}

/// No value is larger than this without its sign; also of those that are NULL, whatever stands there.
fn magnitude_of_any(values: &ArrayRef) -> Result<u128> {
    // The bits of all of them together, where those of a negative number are turned round.
    Ok(match values.data_type() {
        DataType::Int64 => {
            let bits = values.as_primitive::<Int64Type>().values().iter().fold(0, |bits, value| bits | (value ^ (value >> 63)));
            bits.unsigned_abs().into()
        }
        DataType::UInt64 => values.as_primitive::<UInt64Type>().values().iter().fold(0, |bits, value| bits | value).into(),
        DataType::Decimal128(..) => {
            let bits = values.as_primitive::<Decimal128Type>().values().iter().fold(0, |bits, value| bits | (value ^ (value >> 127)));
            bits.unsigned_abs()
        }
        kind => return Err(internal("values", kind)),
    }
    // As the least negative number is one further from 0 than the largest is.
    .saturating_add(1))
}

/// The sum of the distinct values in a window that moves on.
#[derive(Debug, Default)]
struct SlidingDistinct {
    /// How often each is in it.
    counts: HashMap<i64, u64>,
    sum: i128,
}

impl SlidingDistinct {
    fn add(&mut self, value: i64) {
        let count = self.counts.entry(value).or_default();
        if *count == 0 {
            self.sum += i128::from(value);
        }
        *count += 1;
    }
}

fn whole_numbers(values: &ArrayRef) -> Result<&PrimitiveArray<Int64Type>> {
    values.as_primitive_opt::<Int64Type>().ok_or_else(|| internal("values", values.data_type()))
}

impl Accumulator for SlidingDistinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        whole_numbers(first(values)?)?.iter().flatten().for_each(|value| self.add(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in whole_numbers(first(values)?)?.iter().flatten() {
            let Some(count) = self.counts.get_mut(&value) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&value);
                self.sum -= i128::from(value);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    /// As of the others: the distinct values, as decimals.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<_> = self.counts.keys().map(|&value| ScalarValue::Decimal128(Some(value.into()), 38, 0)).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &WIDE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = first(states)?;
        let lists = lists.as_list_opt::<i32>().ok_or_else(|| internal("a state", lists.data_type()))?;
        for values in lists.iter().flatten() {
            let values = values.as_primitive_opt::<Decimal128Type>().ok_or_else(|| internal("a state", values.data_type()))?;
            values.iter().flatten().filter_map(|value| i64::try_from(value).ok()).for_each(|value| self.add(value));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        narrowed((!self.counts.is_empty()).then_some(self.sum), &DataType::Int64)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, u64)>()
    }
}
