//! English for people, made from facts: nobody else composes, splits or edits a sentence.

pub mod units;
