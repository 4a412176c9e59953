//! Which certificate a client gets, by the name that it asks for.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;

/// Certificates by the names they carry: an exact name first, then a wildcard for its first label, then the default.
///
/// The default also answers clients that name nothing or something unknown: a handshake that fails for the name tells
/// an operator less than a certificate that shows who answered.
#[derive(Debug)]
pub(super) struct Certificates {
    exact: HashMap<Box<str>, Arc<CertifiedKey>>,
    /// By what follows `*.`.
    wildcard: HashMap<Box<str>, Arc<CertifiedKey>>,
    default: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    /// The first one is the default. Where two carry one name, the earlier has it.
    pub(super) fn new(certified: Vec<Arc<CertifiedKey>>) -> Self {
        let (mut exact, mut wildcard) = (HashMap::new(), HashMap::new());
        for one in &certified {
            for name in names(one) {
                let (map, key) = match name.strip_prefix("*.") {
                    Some(parent) => (&mut wildcard, parent),
                    None => (&mut exact, &*name),
                };
                map.entry(key.into()).or_insert_with(|| Arc::clone(one));
            }
        }
        Self {
            exact,
            wildcard,
            default: certified.into_iter().next(),
        }
    }

    /// `name` in lower case, as rustls gives it.
    fn find(&self, name: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        let named = name.and_then(|name| {
            let parent = || name.split_once('.').map(|(_, parent)| parent);
            self.exact
                .get(name)
                .or_else(|| parent().and_then(|parent| self.wildcard.get(parent)))
        });
        named.or(self.default.as_ref())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name()).cloned()
    }
}

/// The DNS names that a certificate carries, in lower case. One that cannot be parsed has none, and serves as the
/// default if it is the first.
fn names(certified: &CertifiedKey) -> Vec<String> {
    let leaf = certified.cert.first().map(EndEntityCert::try_from);
    let Some(Ok(leaf)) = leaf else {
        return Vec::new();
    };
    leaf.valid_dns_names().map(str::to_ascii_lowercase).collect()
}
