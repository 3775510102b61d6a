//! Whether a state grows, such as memory in use: over hours to months, from a time on.
//!
//! ```text
//!               since               steady before `since`, a line from there on:
//!                 │    .·˙·˙
//!                 │.·˙˙                    level + slope × (time − since)
//!   ·.·˙.·.·.˙·.··┴˙
//! ```
//!
//! The line is the one of Theil and Sen: the median of the slopes between any two points, which outliers do not move. Its range of 95 % is
//! Sen's (Estimates of the regression coefficient based on Kendall's tau, 1968). Whether it grows at all is decided by the test of Mann and Kendall.
//! Where it begins is where a bent line fits best; a step, as a new version makes it, is no growth.

/// Points that say something.
const POINTS_MIN: usize = 12;

/// Points of a line that begins later than the first one, at least, and their part of all.
const LINE_POINTS_MIN: usize = 8;
const LINE_PART_MIN: usize = 4;

/// Points before a step.
const STEP_POINTS_MIN: usize = 3;

/// Deviations of the normal distribution: 95 % of it lie between two of these.
const RANGE_DEVIATIONS: f64 = 1.96;

/// The same for what is called growth at all: one steady state of two thousand is beyond it.
const GROWTH_DEVIATIONS: f64 = 3.3;

/// What grows by less, as a part of its level, is steady.
const GROWTH_PART_MIN: f64 = 0.05;

/// It must grow by this many median deviations of the points from the line.
const GROWTH_NOISE_MIN: f64 = 3.0;

/// The later half must grow at this part of the whole slope: caches that fill do not.
const LATER_SLOPE_MIN: f64 = 0.25;

/// A value at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthPoint {
    /// Seconds since any moment.
    pub seconds: f64,
    /// What there was.
    pub value: f64,
}

/// A line that a state follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The place of the first point of the line; 0 if it grows all the time.
    pub since: usize,
    /// How much a second.
    pub slope: f64,
    /// Between which the slope is: 95 %. Values that depend on each other make it wider than it says.
    pub slope_range: [f64; 2],
    /// Values of the line at its begin and at its end.
    pub values: [f64; 2],
}

/// What became of a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trend {
    /// There are too few values to say so.
    TooShort,
    /// It does not grow, or not by more than it varies.
    Steady,
    /// It grows.
    Growing(Growth),
}

impl Trend {
    /// The trend of some values, by time.
    pub fn of(points: &[GrowthPoint]) -> Trend {
        if points.len() < POINTS_MIN {
            return Trend::TooShort;
        }
        let (since, of_line) = best_bend(points);
        if let Some((step, _)) = best_step(points).filter(|(_, of_step)| *of_step < of_line) {
            // A step explains more: what comes behind it stands for itself.
            return Trend::of(&points[step..]).later(step);
        }
        line(&points[since..]).map_or(Trend::Steady, |growth| Trend::Growing(growth).later(since))
    }

    /// The trend of values that begin this many places later; too few of them to tell leave all of them steady.
    fn later(self, places: usize) -> Trend {
        match self {
            Trend::Growing(growth) => Trend::Growing(Growth { since: growth.since + places, ..growth }),
            Trend::TooShort | Trend::Steady => Trend::Steady,
        }
    }
}

/// Squared deviations from the mean.
fn of_mean(points: &[GrowthPoint]) -> f64 {
    let mean = points.iter().map(|point| point.value).sum::<f64>() / points.len().max(1) as f64;
    points.iter().map(|point| (point.value - mean).powi(2)).sum()
}

/// Where a line that is level first bends, and its squared deviations. A bend later than the first point must be worth it (Schwarz's criterion).
fn best_bend(points: &[GrowthPoint]) -> (usize, f64) {
    let last = points.len() - LINE_POINTS_MIN.max(points.len() / LINE_PART_MIN);
    let bends = (0..=last).map(|since| (since, of_bent_line(points, since)));
    let best = bends.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::MAX));
    let straight = of_bent_line(points, 0);
    let count = points.len() as f64;
    if count * (best.1.max(f64::MIN_POSITIVE) / straight.max(f64::MIN_POSITIVE)).ln() + count.ln() < 0.0 { best } else { (0, straight) }
}

/// Squared deviations from the best line that is level before a point.
fn of_bent_line(points: &[GrowthPoint], since: usize) -> f64 {
    let begin = points[since].seconds;
    let count = points.len() as f64;
    let along = |point: &GrowthPoint| (point.seconds - begin).max(0.0);
    let (mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0);
    for point in points {
        let at = along(point);
        (x, y, xx, xy) = (x + at, y + point.value, xx + at * at, xy + at * point.value);
    }
    let spread = xx - x * x / count;
    let slope = if spread > 0.0 { (xy - x * y / count) / spread } else { 0.0 };
    let level = (y - slope * x) / count;
    points.iter().map(|point| (point.value - level - slope * along(point)).powi(2)).sum()
}

/// The first point behind the best step, and the squared deviations from the two levels.
fn best_step(points: &[GrowthPoint]) -> Option<(usize, f64)> {
    let steps = STEP_POINTS_MIN..points.len().saturating_sub(STEP_POINTS_MIN);
    let of = |step: usize| (step, of_mean(&points[..step]) + of_mean(&points[step..]));
    steps.map(of).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The line of points that grow; `None` if they do not.
fn line(points: &[GrowthPoint]) -> Option<Growth> {
    let slopes = slopes(points);
    let count = points.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    // Pairs that rise without those that fall.
    let rises = slopes.iter().map(|slope| slope.total_cmp(&0.0) as i64).sum::<i64>() as f64;
    let slope = median(&slopes)?;
    if rises < GROWTH_DEVIATIONS * deviation || slope <= 0.0 {
        return None;
    }
    let half = RANGE_DEVIATIONS * deviation;
    let pairs = slopes.len() as f64;
    let at = |place: f64| slopes[(0..slopes.len() - 1).take_while(|before| (*before as f64) < place).count()];
    let slope_range = [at((pairs - half) / 2.0), at((pairs + half) / 2.0)];
    let mut levels: Vec<f64> = points.iter().map(|point| point.value - slope * point.seconds).collect();
    levels.sort_by(f64::total_cmp);
    let level = median(&levels)?;
    let mut noise: Vec<f64> = levels.iter().map(|other| (other - level).abs()).collect();
    noise.sort_by(f64::total_cmp);
    let value_at = |point: &GrowthPoint| level + slope * point.seconds;
    let values = [value_at(points.first()?), value_at(points.last()?)];
    let grown = values[1] - values[0];
    let later = median(&self::slopes(&points[points.len() / 2..]))?;
    let is_growth =
        grown >= GROWTH_PART_MIN * values[0].abs() && grown >= GROWTH_NOISE_MIN * median(&noise)? && later >= LATER_SLOPE_MIN * slope;
    is_growth.then_some(Growth { since: 0, slope, slope_range, values })
}

/// The slopes between any two points, the least first.
fn slopes(points: &[GrowthPoint]) -> Vec<f64> {
    let pairs = points.iter().enumerate().flat_map(|(place, a)| points[place + 1..].iter().map(move |b| (a, b)));
    let mut slopes: Vec<f64> =
        pairs.filter(|(a, b)| b.seconds > a.seconds).map(|(a, b)| (b.value - a.value) / (b.seconds - a.seconds)).collect();
    slopes.sort_by(f64::total_cmp);
    slopes
}

/// The middle one of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use longpole_testing::random::Random;
    use proptest::prelude::*;

    use super::*;

    const DAY: f64 = 86_400.0;

    /// 48 values of a number of days.
    fn points(days: f64, value: impl FnMut(f64) -> f64) -> Vec<GrowthPoint> {
        let days = (0..48).map(|place| days * f64::from(place) / 48.0);
        days.clone().zip(days.map(value)).map(|(day, value)| GrowthPoint { seconds: day * DAY, value }).collect()
    }

    /// From -1 to 1.
    fn noise(random: &mut Random) -> f64 {
        random.below(2_001) as f64 / 1_000.0 - 1.0
    }

    fn growth(points: &[GrowthPoint]) -> Growth {
        match Trend::of(points) {
            Trend::Growing(growth) => growth,
            other => panic!("{other:?} of {points:?}"),
        }
    }

    #[test]
    fn a_leak_of_one_percent_a_day_is_found_in_noise_and_daily_load() {
        let mut random = Random(7);
        let leak = points(30.0, |day| 200.0 + 2.0 * day + 3.0 * noise(&mut random) + 10.0 * (day * std::f64::consts::TAU).sin());
        let found = growth(&leak);
        let per_day = found.slope * DAY;
        assert!((1.8..2.2).contains(&per_day), "{per_day}");
        let [low, high] = found.slope_range.map(|slope| slope * DAY);
        assert!(low <= 2.0 && 2.0 <= high && high - low < 0.6, "{low} to {high}");
        assert!(found.since == 0 && (found.values[0] - 200.0).abs() < 6.0 && (found.values[1] - 258.8).abs() < 6.0, "{found:?}");
    }

    #[test]
    fn a_leak_begins_with_a_version() {
        let mut random = Random(11);
        let leak = points(7.0, |day| 100.0 + 8.0 * (day - 4.0_f64).max(0.0) + noise(&mut random));
        let found = growth(&leak);
        let begin = leak[found.since].seconds / DAY;
        assert!((3.6..4.4).contains(&begin), "{begin}");
        // The new version also needs more from the first moment on.
        let mut random = Random(12);
        let jumped = points(7.0, |day| 100.0 + if day < 3.0 { 0.0 } else { 50.0 + 8.0 * (day - 3.0) } + noise(&mut random));
        let begin = jumped[growth(&jumped).since].seconds / DAY;
        assert!((2.8..3.6).contains(&begin), "{begin}");
    }

    #[test]
    fn what_is_steady_is_no_growth() {
        let mut random = Random(5);
        let mut grown = 0;
        for round in 0..2_000_u32 {
            let (phase, days) = (f64::from(round) / 7.0, [1.0, 3.0, 7.0, 30.0][round as usize % 4]);
            let mut level = 100.0;
            let steady = points(days, |day| match round % 5 {
                0 => 100.0 + 5.0 * noise(&mut random),
                // Load of a day.
                1 => 100.0 + 20.0 * ((day * 7.0 / days + phase) * std::f64::consts::TAU).sin() + noise(&mut random),
                // A cache that fills.
                2 => 100.0 - 60.0 * (-day * 20.0 / days).exp() + noise(&mut random),
                // A new version that needs more.
                3 => 100.0 + 40.0 * f64::from(u8::from(day > days * 0.4)) + 3.0 * noise(&mut random),
                // A garbage collector.
                _ => {
                    level = if level > 120.0 { 100.0 } else { level + 8.0 + noise(&mut random) };
                    level
                }
            });
            grown += i32::from(matches!(Trend::of(&steady), Trend::Growing(_)));
        }
        assert!(grown <= 10, "{grown} of 2,000 steady states grow");
    }

    #[test]
    fn a_few_values_say_nothing() {
        assert_eq!(Trend::of(&points(1.0, |day| day)[..POINTS_MIN - 1]), Trend::TooShort);
        assert_eq!(Trend::of(&[]), Trend::TooShort);
    }

    proptest! {
        #[test]
        fn any_values_have_a_trend(values in proptest::collection::vec((0_u32..1_000, -1e12_f64..1e12), 0..70)) {
            let mut points: Vec<GrowthPoint> =
                values.into_iter().map(|(seconds, value)| GrowthPoint { seconds: f64::from(seconds), value }).collect();
            points.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            if let Trend::Growing(growth) = Trend::of(&points) {
                prop_assert!(growth.since < points.len() && growth.slope_range[0] <= growth.slope && growth.slope <= growth.slope_range[1]);
            }
        }
    }
}
