//! Where resolving a file collects what it finds: problems, settings in force, and what the machine must have.

use std::{fmt::Display, ops::RangeInclusive, time::Duration};

use crate::config::{
    Name, Span,
    diagnostic::Diagnostic,
    document::Document,
    environment::Need,
    explain::{Origin, Setting},
    path::Path,
    raw::Maybe,
    span::Spanned,
};

pub(in crate::config) struct Context<'a> {
    pub(in crate::config) document: &'a Document,
    pub(in crate::config) diagnostics: Vec<Diagnostic>,
    pub(in crate::config) settings: Vec<Setting>,
    pub(in crate::config) needs: Vec<Need>,
}

/// A whole number: its default and bounds, and the code of a value outside of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    default: u64,
    min: u64,
    max: u64,
    code: &'static str,
}

impl Whole {
    /// A number whose bounds are only there to keep slips out.
    pub(super) const fn new(default: u64, bounds: RangeInclusive<u64>) -> Self {
        Self {
            default,
            min: *bounds.start(),
            max: *bounds.end(),
            code: "E256",
        }
    }

    /// The same with a code of its own.
    pub(super) const fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    fn bounds(self) -> RangeInclusive<u64> {
        self.min..=self.max
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            diagnostics: Vec::new(),
            settings: Vec::new(),
            needs: Vec::new(),
        }
    }

    pub(in crate::config) fn report(&mut self, mut diagnostic: Diagnostic) {
        if diagnostic.key.is_empty() {
            diagnostic.key = self.document.root.path_of(diagnostic.primary.span);
        }
        self.diagnostics.push(diagnostic);
    }

    /// What the file says at `span`, without its quotes.
    pub(super) fn shown(&self, span: Span) -> String {
        self.document.value_at(span).trim_matches(['"', '\'']).to_owned()
    }

    /// Reports `written` unless it `holds`; the message reads "`key` must …, not …".
    pub(super) fn require<T>(
        &mut self,
        written: &Maybe<T>,
        code: &'static str,
        must: &str,
        holds: impl FnOnce(&T) -> bool,
    ) {
        if let Some(written) = written.as_ref().filter(|written| !holds(&written.value)) {
            self.out_of_bounds(written.span, code, must);
        }
    }

    /// Reports that the value at `span` is not as it must be.
    pub(super) fn out_of_bounds(&mut self, span: Span, code: &'static str, must: &str) {
        let key = self.document.root.path_of(span);
        let message = format!("`{key}` must {must}, not {}", self.shown(span));
        self.report(Diagnostic::error(code, span, message).at(key));
    }

    /// Reports `written` unless it lies within `bounds`.
    pub(super) fn bounds(&mut self, written: &Maybe<u64>, code: &'static str, bounds: RangeInclusive<u64>) {
        let Some(written) = written
            .as_ref()
            .filter(|written| !bounds.contains(&written.value))
        else {
            return;
        };
        let key = self.document.root.path_of(written.span);
        let unit = match () {
            () if key.ends_with("_ms") => " milliseconds",
            () if key.ends_with("_bytes") => " bytes",
            () if key.ends_with("_percent") => " percent",
            () => "",
        };
        let must = format!("lie in [{}, {}]{unit}", bounds.start(), bounds.end());
        self.out_of_bounds(written.span, code, &must);
    }

    /// A whole number, within its bounds or else at its default.
    pub(super) fn whole(&mut self, at: &Path, key: &str, written: &Maybe<u64>, whole: Whole) -> u64 {
        self.bounds(written, whole.code, whole.bounds());
        self.setting(at, key, written, Some(whole.default.to_string()));
        let written = written.as_ref().map(|written| written.value);
        written
            .filter(|value| whole.bounds().contains(value))
            .unwrap_or(whole.default)
    }

    /// A time in milliseconds.
    pub(super) fn time(&mut self, at: &Path, key: &str, written: &Maybe<u64>, whole: Whole) -> Duration {
        Duration::from_millis(self.whole(at, key, written, whole))
    }

    /// A whole number of which bounds small enough for 32 bits are known.
    pub(super) fn count(&mut self, at: &Path, key: &str, written: &Maybe<u64>, whole: Whole) -> u32 {
        u32::try_from(self.whole(at, key, written, whole)).unwrap_or(u32::MAX)
    }

    pub(super) fn flag(&mut self, at: &Path, key: &str, written: &Maybe<bool>, default: bool) -> bool {
        self.setting(at, key, written, Some(default.to_string()));
        written.as_ref().map_or(default, |written| written.value)
    }

    /// One of several words; `default` is the word and what it stands for.
    pub(super) fn word<T: Copy>(
        &mut self,
        at: &Path,
        key: &str,
        written: &Maybe<T>,
        default: (&str, T),
    ) -> T {
        self.setting(at, key, written, Some(default.0.to_owned()));
        written.as_ref().map_or(default.1, |written| written.value)
    }

    /// A text that may be left out.
    pub(super) fn text(&mut self, at: &Path, key: &str, written: &Maybe<String>) -> Option<String> {
        self.setting(at, key, written, Some(NULL.to_owned()));
        written.as_ref().map(|written| written.value.clone())
    }

    /// Notes what a setting is: what the file says, or its default. Without a default it must be written.
    pub(super) fn setting<T>(&mut self, at: &Path, key: &str, written: &Maybe<T>, default: Option<String>) {
        if let Some(written) = written {
            return self.written(at, key, written.span, default);
        }
        let value = default.clone().unwrap_or_else(|| NULL.to_owned());
        // A key whose value is null is at its default because the file says so.
        let null = self.document.root.find(&at.key(key).to_string());
        let origin = null.map_or(Origin::Default, |null| {
            Origin::Line(self.document.line(null.span))
        });
        self.note(at, key, value, default, origin);
    }

    /// Notes a setting that the file makes.
    pub(super) fn written(&mut self, at: &Path, key: &str, span: Span, default: Option<String>) {
        let line = self.document.line(span);
        let value = self.document.value_at(span);
        self.note(at, key, value, default, Origin::Line(line));
    }

    /// Notes a setting that is left out and takes the value of another.
    pub(super) fn inherited(&mut self, at: &Path, key: &str, value: impl Display, from: &str) {
        self.note(
            at,
            key,
            value.to_string(),
            Some(NULL.to_owned()),
            Origin::Inherited(from.to_owned()),
        );
    }

    /// Notes a setting in full.
    pub(super) fn note(
        &mut self,
        at: &Path,
        key: &str,
        value: String,
        default: Option<String>,
        origin: Origin,
    ) {
        self.settings.push(Setting {
            key: at.key(key).to_string(),
            value,
            default,
            origin,
        });
    }

    /// A name of lb's own kind, or a stand-in for one that is not.
    pub(super) fn name(&mut self, written: &Spanned<String>) -> Name {
        Name::new(&written.value).unwrap_or_else(|| {
            let key = self.document.root.path_of(written.span);
            let message = format!("`{}` is not a name", self.shown(written.span));
            self.report(
                Diagnostic::error("E110", written.span, message)
                    .at(key)
                    .help("a name is 1 to 64 of a-z, 0-9, `.`, `_` and `-`"),
            );
            Name::new("invalid").expect("seven lower-case letters")
        })
    }
}

/// How a setting that is not made is written.
pub(super) const NULL: &str = "null";

/// The longest time for what nobody means to be longer: a day, in milliseconds.
pub(super) const DAY_MS: u64 = 86_400_000;
/// An hour in milliseconds.
pub(super) const HOUR_MS: u64 = 3_600_000;
