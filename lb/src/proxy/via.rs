//! How this process names itself to the next hop, and knows its own requests when they come back.

use http::Version;
use http::header::{HeaderMap, HeaderValue, VIA};

/// What `Via` says of this process (RFC 9110, 7.6.3). The name is drawn at start: two instances behind each other are no
/// loop, and it tells nobody where this one runs.
#[derive(Debug)]
pub struct Via {
    name: Box<str>,
    /// For requests of HTTP/1.0, HTTP/1.1 and HTTP/2.
    fields: [HeaderValue; 3],
}

impl Via {
    /// A name of 64 bits from `random`.
    pub fn new(random: u64) -> Self {
        let name = format!("lb-{random:016x}");
        let fields = ["1.0", "1.1", "2"].map(|version| {
            HeaderValue::from_str(&format!("{version} {name}"))
                .expect("letters, digits, a dot, a dash and a space")
        });
        Self {
            name: name.into(),
            fields,
        }
    }

    /// Whether a request with these fields has passed here before.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(VIA).iter();
        values.any(|value| memchr::memmem::find(value.as_bytes(), self.name.as_bytes()).is_some())
    }

    /// What the next hop is told of a request of this version that has passed nobody before.
    pub(super) fn own(&self, version: Version) -> &HeaderValue {
        &self.fields[match version {
            Version::HTTP_09 | Version::HTTP_10 => 0,
            Version::HTTP_11 => 1,
            _ => 2,
        }]
    }

    /// What the next hop is told of a request of this version with these fields.
    pub(super) fn field(&self, version: Version, headers: &HeaderMap) -> HeaderValue {
        let own = self.own(version);
        let before = headers.get_all(VIA).iter().map(HeaderValue::as_bytes);
        let all: Vec<&[u8]> = before.chain([own.as_bytes()]).collect();
        HeaderValue::from_bytes(&all.join(&b", "[..])).unwrap_or_else(|_| own.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [PROXY-15]
    #[test]
    fn a_request_says_where_it_passed_and_is_known_again_by_the_same_process_only() {
        let (one, other) = (Via::new(1), Via::new(2));
        let mut headers = HeaderMap::new();
        assert!(!one.knows(&headers));
        let first = one.field(Version::HTTP_11, &headers);
        assert_eq!(first, "1.1 lb-0000000000000001");
        headers.append(VIA, HeaderValue::from_static("1.0 fred"));
        headers.append(VIA, first);
        let second = other.field(Version::HTTP_2, &headers);
        assert_eq!(second, "1.0 fred, 1.1 lb-0000000000000001, 2 lb-0000000000000002");
        let mut headers = HeaderMap::new();
        headers.insert(VIA, second);
        assert!(one.knows(&headers) && other.knows(&headers) && !Via::new(3).knows(&headers));
    }
}
