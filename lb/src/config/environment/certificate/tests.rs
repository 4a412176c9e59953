use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::config::Span;

/// A certificate of this many days around the time 1 000 days, with its key.
fn made(from: i64, to: i64) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["lb.test".to_owned()]).unwrap();
    let start = rcgen::date_time_ymd(1970, 1, 1);
    let day = std::time::Duration::from_secs(DAY.unsigned_abs());
    params.not_before = start + day * u32::try_from(NOW + from).unwrap();
    params.not_after = start + day * u32::try_from(NOW + to).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    (chain, key.serialize_pem())
}

/// Days.
const NOW: i64 = 1000;

fn need() -> Need {
    Need {
        span: Span::default(),
        key: "here".to_owned(),
        what: super::super::What::Socket,
    }
}

fn said(problem: Option<Diagnostic>) -> (&'static str, String) {
    problem.map_or(("", String::new()), |problem| (problem.code, problem.message))
}

// [CFG-16]
#[test]
fn a_certificate_out_of_its_time_is_an_error_and_one_that_soon_will_be_a_warning() {
    for (from, to, code, message) in [
        (-9, 15, "", ""),
        (-9, 13, "W408", "the certificate in `here` expires in 13 days"),
        (
            -9,
            0,
            "W408",
            "the certificate in `here` expires in less than a day",
        ),
        (-9, -1, "E407", "the certificate in `here` has expired, 1 day ago"),
        (
            2,
            90,
            "E407",
            "the certificate in `here` is not valid yet, but in 2 days",
        ),
    ] {
        let (chain, _) = made(from, to);
        let expected = (code, message.to_owned());
        assert_eq!(said(validity(&need(), chain.as_bytes(), NOW * DAY)), expected);
        let longer = made(-99, 999).0 + &chain;
        assert_eq!(
            said(validity(&need(), longer.as_bytes(), NOW * DAY)),
            expected,
            "in a chain"
        );
    }
}

// [CFG-16]
#[test]
fn a_certificate_and_a_key_that_do_not_belong_together_are_an_error() {
    let ((chain, key), (other, _)) = (made(-9, 99), made(-9, 99));
    let judged = |chain: &str, key: &str| said(pair(&need(), chain.as_bytes(), key.as_bytes()));
    assert_eq!(judged(&chain, &key), ("", String::new()));
    for (chain, key, message) in [
        (
            &*other,
            &*key,
            "`here` and the key beside it do not belong together",
        ),
        ("", &key, "`here` holds no certificate"),
        (&key, &key, "`here` holds no certificate"),
        (
            &chain,
            &chain,
            "`here` has a file beside it that holds no private key",
        ),
    ] {
        assert_eq!(judged(chain, key), ("E406", message.to_owned()));
    }
}

#[test]
fn files_that_cannot_be_read_are_told_of_elsewhere() {
    let nowhere = Path::new("/no/such/file");
    assert!(check(&need(), nowhere, nowhere).is_none());
}
