//! Ending runs early: by a token that any thread may set, or at a moment.
//!
//! Both are looked at before each step of a plan, and so in each turn of a loop. A step that has begun runs to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use armet_runtime::{Probe, RunError, StepReport, StepResult};

/// Says, once and for good, that a run is no longer wanted. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it: runs that have it end before their next step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// When a run is to end though it is not finished. By default never.
#[derive(Debug, Clone, Default)]
pub struct RunLimits {
    /// Ends the run with [`RunError::Cancelled`] once it is set.
    pub token: Option<CancelToken>,
    /// Ends the run with [`RunError::DeadlinePassed`] from this moment on.
    pub deadline: Option<Instant>,
}

impl RunLimits {
    /// The error with which a run has to end now.
    pub fn reached(&self) -> Option<RunError> {
        if self.token.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Some(RunError::Cancelled);
        }
        self.deadline.is_some_and(|at| Instant::now() >= at).then_some(RunError::DeadlinePassed)
    }
}

/// Hands on to another probe, and stops where a limit is reached.
pub(crate) struct Limited<'a> {
    limits: &'a RunLimits,
    probe: &'a mut dyn Probe,
    reached: std::cell::OnceCell<RunError>,
}

impl<'a> Limited<'a> {
    pub(crate) fn new(limits: &'a RunLimits, probe: &'a mut dyn Probe) -> Self {
        Self { limits, probe, reached: std::cell::OnceCell::new() }
    }

    /// Why the run really ended, where it ended with `error`.
    pub(crate) fn name(self, error: RunError) -> RunError {
        self.reached.into_inner().unwrap_or(error)
    }
}

impl Probe for Limited<'_> {
    fn wants_results(&self) -> bool {
        self.probe.wants_results()
    }

    fn wants_stop(&self) -> bool {
        if self.probe.wants_stop() {
            return true;
        }
        match self.limits.reached() {
            Some(error) => {
                // A second answer would be the first one's again.
                let _ = self.reached.set(error);
                true
            }
            None => false,
        }
    }

    fn step(&mut self, report: &StepReport, duration: Duration, results: &[StepResult<'_>]) {
        self.probe.step(report, duration, results);
    }
}
