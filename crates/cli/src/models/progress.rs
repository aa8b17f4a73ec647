//! Shows a fetch on a terminal's error stream; draws nothing anywhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::fetch::Event;

/// Draws [`Event`]s.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `terminal`: whether the error stream is one.
    pub(crate) fn new(terminal: bool) -> Self {
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{spinner} {bar:24} {pos}/{len} {msg}");
        bar.set_style(style.expect("the template is well-formed"));
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar }
    }

    /// Shows one event.
    pub(crate) fn show(&self, event: Event) {
        match event {
            Event::Start { entry, done, of } => {
                self.bar.set_length(of as u64);
                self.bar.set_position(done as u64);
                self.bar.set_message(entry);
            }
            Event::Finish { of } => {
                self.bar.set_position(of as u64);
                self.bar.finish_and_clear();
            }
        }
    }
}
