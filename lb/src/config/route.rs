//! Which requests go where.

use http::{HeaderName, HeaderValue};

/// One rule; the first whose match takes a request decides where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Which requests.
    pub matches: Match,
    /// Where they go.
    pub to: To,
    /// The model of a request that names none.
    pub default_model: Option<String>,
    /// What takes the place of the match's path prefix, without a slash at its end; `None` leaves the path as it is.
    pub rewrite_prefix: Option<String>,
    /// On the way to the provider.
    pub request_headers: HeaderChanges,
    /// On the way back.
    pub response_headers: HeaderChanges,
}

/// Which requests a route takes: those that fit all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// How the path begins, in whole segments; without a slash at its end, so empty for every path.
    pub path_prefix: String,
    /// Whom the request is for; `None` is anybody.
    pub host: Option<HostPattern>,
    /// Fields with their exact values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// One host, or all under one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This one, in lower case.
    Exact(String),
    /// Those that end in this, which begins with a dot and is in lower case.
    Under(String),
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// By the model that the request names.
    Models,
    /// To the provider with this index in [`super::Config::providers`], whatever the request is.
    Provider(usize),
}

/// Changes to the fields of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeaderChanges {
    /// These are left out.
    pub remove: Vec<HeaderName>,
    /// These have this value, whatever they had.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

impl Match {
    /// What of `path` stands behind the prefix, if it begins with it: empty, or with a slash in front.
    pub fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&*self.path_prefix)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl HostPattern {
    /// Whether `host`, without its port, is one of those.
    pub fn takes(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => host.eq_ignore_ascii_case(exact),
            Self::Under(suffix) => {
                let split = host.len().checked_sub(suffix.len()).filter(|at| *at > 0);
                split
                    .and_then(|at| host.get(at..))
                    .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            }
        }
    }
}

impl HeaderChanges {
    /// Whether the field of this name is changed.
    pub fn concern(&self, name: &HeaderName) -> bool {
        self.remove.contains(name) || self.set.iter().any(|(set, _)| set == name)
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty()
    }
}

#[cfg(test)]
mod tests;
