//! Writing to the terminal: data to standard output, all else to standard error.

use std::io::{self, Write};

/// Both streams of the command.
#[derive(Debug)]
pub(crate) struct Terminal {
    out: io::Stdout,
    err: io::Stderr,
}

/// An error that knows what to do about it.
#[derive(Debug)]
pub(crate) struct Hint {
    message: String,
    hint: String,
}

impl Hint {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hint {}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }

    /// A line of data.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// One JSON value on a line of its own.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> io::Result<()> {
        writeln!(self.out, "{value}")
    }

    /// A remark. A closed error stream is no reason to stop.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) {
        if writeln!(self.err, "{text}").is_err() {
            self.err = io::stderr();
        }
    }

    /// An error with its causes and, when one knows it, what to do.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.note(format_args!("error: {error}"));
        let mut before = error.to_string();
        for cause in error.chain().skip(1) {
            let text = cause.to_string();
            // Many errors say their cause in their own sentence.
            if !before.contains(&text) {
                self.note(format_args!("  because: {text}"));
            }
            before = text;
        }
        if let Some(hint) = error.downcast_ref::<Hint>() {
            self.note(format_args!("\nhint: {}", hint.hint));
        }
    }
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(kind)
}

/// Columns of text, each as wide as its widest cell; numbers are set to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = header.iter().map(|h| width(h)).collect();
    for row in rows {
        for (w, cell) in widths.iter_mut().zip(row) {
            *w = (*w).max(width(cell));
        }
    }
    let is_number = |cell: &str| cell.chars().next().is_some_and(|c| c.is_ascii_digit());
    let mut out = String::new();
    let mut push = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (cell, &w) in cells.zip(&widths) {
            let gap = " ".repeat(w.saturating_sub(width(cell)));
            if is_number(cell) {
                line.push_str(&gap);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&gap);
            }
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    };
    push(&mut header.iter().copied());
    for row in rows {
        push(&mut row.iter().map(String::as_str));
    }
    out
}

/// A count with a metric prefix: `4.1 M`.
pub(crate) fn metric(value: f64) -> String {
    let (scale, unit) = match value {
        v if v >= 1e12 => (1e12, " T"),
        v if v >= 1e9 => (1e9, " G"),
        v if v >= 1e6 => (1e6, " M"),
        v if v >= 1e3 => (1e3, " k"),
        _ => return format!("{value:.0}"),
    };
    format!("{:.1}{unit}", value / scale)
}

/// Bytes in binary units.
pub(crate) fn bytes(value: usize) -> String {
    let value = value as f64;
    match value {
        v if v >= 1024.0 * 1024.0 => format!("{:.1} MiB", v / 1024.0 / 1024.0),
        v if v >= 1024.0 => format!("{:.1} KiB", v / 1024.0),
        v => format!("{v:.0} B"),
    }
}

/// What of a long name still tells it apart: its end.
pub(crate) fn shorten(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(count - most + 1).collect();
    format!("…{tail}")
}
