//! Writing to the terminal: data to standard output, all else to standard error.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::Context;
use armet::{ImportError, LoadError};

/// What failed when data cannot be written.
pub(crate) const UNWRITTEN: &str = "cannot write to the standard output";

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

impl Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hint {}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }

    /// A line of data, or several.
    pub(crate) fn line(&mut self, text: impl Display) -> anyhow::Result<()> {
        writeln!(self.out, "{}", escape(&text.to_string(), true)).context(UNWRITTEN)
    }

    /// One JSON value on a line of its own.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> anyhow::Result<()> {
        let mut text = String::new();
        for c in value.to_string().chars() {
            // Only inside of strings, and escaped there they are the same.
            if acts(c) {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            } else {
                text.push(c);
            }
        }
        writeln!(self.out, "{text}").context(UNWRITTEN)
    }

    /// A remark. A closed error stream is no reason to stop.
    pub(crate) fn note(&mut self, text: impl Display) {
        if writeln!(self.err, "{}", escape(&text.to_string(), true)).is_err() {
            self.err = io::stderr();
        }
    }

    /// An error with its causes and, when one knows it, what to do.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.note(format_args!("error: {}", clean(&error.to_string())));
        let mut before = error.to_string();
        for cause in error.chain().skip(1) {
            let text = cause.to_string();
            // Many errors say their cause in their own sentence.
            if !before.contains(&text) {
                let is_list = matches!(
                    cause.downcast_ref::<LoadError>(),
                    Some(LoadError::Import(ImportError::Unsupported(_)))
                );
                self.note(format_args!("  because: {}", if is_list { text.clone() } else { clean(&text) }));
            }
            before = text;
        }
        if let Some(hint) = error.downcast_ref::<Hint>() {
            self.note(format_args!("\nhint: {}", clean(&hint.hint)));
        }
    }
}

/// A name out of a file, or a text with such names, as one line that cannot act on a terminal.
pub(crate) fn clean(text: &str) -> String {
    escape(text, false)
}

/// Whether a terminal would obey a character rather than show it, or let it turn the text around it.
pub(crate) fn acts(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

fn escape(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) && !(lines && c == '\n') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// So many of something that takes an `s`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
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

/// A count in a unit with a metric prefix: `4.1 MB`, `0 B`.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let number = metric(value);
    format!("{number}{}{unit}", if number.contains(' ') { "" } else { " " })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_terminals_is_printed() {
        assert_eq!(clean("a\u{1b}[31m\nb\u{202e}c"), "a\\u{1b}[31m\\nb\\u{202e}c");
        assert_eq!(escape("two\nlines\r", true), "two\nlines\\r");
        assert_eq!(clean("größe 猫"), "größe 猫");
    }

    #[test]
    fn counts_read_as_words() {
        assert_eq!((count(1, "step"), count(0, "step")), ("1 step".to_owned(), "0 steps".to_owned()));
        assert_eq!((quantity(0.0, "FLOP"), quantity(4.1e6, "B")), ("0 FLOP".to_owned(), "4.1 MB".to_owned()));
    }
}
