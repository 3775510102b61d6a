//! How much of the run went on at the same time.

use longpole_model::NodeId;

use crate::report::Report;
use crate::schedule::concurrency_limit::Ceiling;
use crate::time::parallelism::{Parallelism, SerialStretch, WorkFigures};

impl Report {
    /// Operations in flight.
    pub fn parallelism(&self) -> Parallelism {
        self.in_flight.parallelism
    }

    /// Stretches of time in which at most one operation was in flight, longest first, at most [`SERIAL_MAX`](crate::time::parallelism::SERIAL_MAX).
    pub fn serial_stretches(&self) -> &[SerialStretch] {
        &self.in_flight.serial
    }

    /// How much work there was, and how much of it could have run at once.
    pub fn work(&self) -> WorkFigures {
        let schedule = self.replay.schedule();
        let work = schedule.nodes().skip(1).map(|node| schedule.own_total(node)).sum();
        let wall = self.wall();
        WorkFigures { work, span: wall - self.path.on_path[NodeId::RUN], wall }
    }

    /// Ceilings of work in flight that the schedule shows.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        self.replay.ceilings()
    }
}
