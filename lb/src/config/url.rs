//! Where an endpoint is.

mod host;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    path::PathBuf,
    str::FromStr,
};

pub use self::host::Host;

/// The address of an endpoint: `http` or `https` and a host, or `unix:` and a socket file; and what comes before every
/// request path, behind a colon where a file is before it (`unix:/run/vllm.sock:/v1`).
///
/// There is no user info and no fragment: neither means anything here, and a password in a URL would end up in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    host: Host,
    port: u16,
    path: String,
    query: Option<String>,
}

/// How an endpoint is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Url {
    /// How the endpoint is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, without port and without brackets.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, the scheme's own where the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What stands before the request's own path: empty, or `/…` without a slash at its end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is appended to every request's query, such as `api-version=2024-10-21`.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// What `Host` says: the port is left out where it is the scheme's own.
    pub fn authority(&self) -> String {
        if matches!(self.host, Host::Socket(_)) {
            // A file has no name that a server could know.
            "localhost".to_owned()
        } else if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl Scheme {
    /// The port that a URL of this scheme means when it names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The word before `://`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Socket(file) if self.path.is_empty() => write!(f, "unix:{}", file.display())?,
            Host::Socket(file) => write!(f, "unix:{}:{}", file.display(), self.path)?,
            _ => write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.path)?,
        }
        self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// Without the query, which may hold a key.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = self.query.is_some();
        let shown = Self {
            query: None,
            ..self.clone()
        };
        write!(f, "{shown}{}", if query { "?…" } else { "" })
    }
}

/// Why a text is no endpoint URL; each reads as the end of "the URL …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// It ends in `#…`.
    #[error("has a fragment (#…), which is never sent")]
    Fragment,
    /// The host is missing or is neither a name nor an address.
    #[error("has no valid host")]
    Host,
    /// Something that a request line cannot carry.
    #[error("holds a character that must be percent-encoded")]
    Illegal,
    /// The port is not a number from 1 to 65535.
    #[error("has no valid port")]
    Port,
    /// It begins with something else than the schemes that lb speaks.
    #[error("must begin with http://, https:// or unix:/")]
    Scheme,
    /// It begins with `unix:`, and no absolute path of a file follows.
    #[error("must name the socket by its whole path")]
    Unix,
    /// It holds `user@` or `user:password@`.
    #[error("holds a user or password, which belongs in api_key_file or headers")]
    UserInfo,
}

impl FromStr for Url {
    type Err = UrlFault;

    fn from_str(text: &str) -> Result<Self, UrlFault> {
        if let Some((scheme, rest)) = text.split_once(':')
            && scheme.eq_ignore_ascii_case("unix")
        {
            return socket(rest);
        }
        let (scheme, rest) = scheme(text)?;
        if rest.contains('#') {
            return Err(UrlFault::Fragment);
        }
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority_end);
        if authority.contains('@') {
            return Err(UrlFault::UserInfo);
        }
        let (path, query) = path_and_query(tail)?;
        let (host, port) = host_and_port(authority)?;
        Ok(Self {
            scheme,
            host,
            port: port.unwrap_or_else(|| scheme.default_port()),
            path,
            query,
        })
    }
}

/// What follows `unix:`.
fn socket(rest: &str) -> Result<Url, UrlFault> {
    let (file, tail) = rest.split_once(':').unwrap_or((rest, ""));
    let named = file.starts_with('/') && !file.ends_with('/') && !file.contains('\0');
    if !named || !(tail.is_empty() || tail.starts_with(['/', '?'])) {
        return Err(UrlFault::Unix);
    }
    if tail.contains('#') {
        return Err(UrlFault::Fragment);
    }
    let (path, query) = path_and_query(tail)?;
    Ok(Url {
        scheme: Scheme::Http,
        host: Host::Socket(PathBuf::from(file)),
        port: Scheme::Http.default_port(),
        path,
        query,
    })
}

fn path_and_query(tail: &str) -> Result<(String, Option<String>), UrlFault> {
    let legal = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'<' | b'>' | b'\\');
    if !tail.bytes().all(legal) {
        return Err(UrlFault::Illegal);
    }
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (tail, None),
    };
    Ok((
        path.trim_end_matches('/').to_owned(),
        query.filter(|query| !query.is_empty()),
    ))
}

fn scheme(text: &str) -> Result<(Scheme, &str), UrlFault> {
    let (scheme, rest) = text.split_once(':').ok_or(UrlFault::Scheme)?;
    let rest = rest.strip_prefix("//").ok_or(UrlFault::Scheme)?;
    match () {
        () if scheme.eq_ignore_ascii_case("http") => Ok((Scheme::Http, rest)),
        () if scheme.eq_ignore_ascii_case("https") => Ok((Scheme::Https, rest)),
        () => Err(UrlFault::Scheme),
    }
}

fn host_and_port(authority: &str) -> Result<(Host, Option<u16>), UrlFault> {
    if let Some(bracketed) = authority.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']').ok_or(UrlFault::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_parse| UrlFault::Host)?;
        let port = match rest {
            "" => None,
            _ => Some(port(rest.strip_prefix(':').ok_or(UrlFault::Host)?)?),
        };
        return Ok((Host::Address(address.into()), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, digits)) => (host, Some(port(digits)?)),
        None => (authority, None),
    };
    if let Ok(address) = host.parse() {
        return Ok((Host::Address(IpAddr::V4(address)), port));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    // One dot at the end marks a name as complete for the resolver.
    let fits = host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label);
    if fits {
        Ok((Host::Name(host.to_ascii_lowercase()), port))
    } else {
        Err(UrlFault::Host)
    }
}

fn port(digits: &str) -> Result<u16, UrlFault> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|port| plain && *port != 0)
        .ok_or(UrlFault::Port)
}

#[cfg(test)]
mod tests;
