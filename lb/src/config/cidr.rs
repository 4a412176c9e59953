//! Address ranges.

use std::{fmt, net::IpAddr, str::FromStr};

/// An address range such as `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Whether `address` lies in the range. An IPv4 address mapped into IPv6 is taken as the IPv4 address it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                same_head(net.to_bits().into(), ip.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => same_head(net.to_bits(), ip.to_bits(), 128, self.prefix),
            _ => false,
        }
    }
}

/// Why a text is not a [`Cidr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no address range such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NotACidr;

impl FromStr for Cidr {
    type Err = NotACidr;

    fn from_str(text: &str) -> Result<Self, NotACidr> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_parse| NotACidr)?;
        let whole = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(digits) => digits.parse().ok().filter(|p| *p <= whole).ok_or(NotACidr)?,
            None => whole,
        };
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// Whether the first `prefix` of `width` bits are the same.
fn same_head(a: u128, b: u128, width: u32, prefix: u8) -> bool {
    let tail = width - u32::from(prefix);
    // A shift by the whole width is not defined: such a range holds every address.
    (a ^ b).checked_shr(tail).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
