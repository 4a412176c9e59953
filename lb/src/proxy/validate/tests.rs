use super::*;

/// What `check` says to a request with these fields, and the host it settles on.
fn checked(
    version: Version,
    method: &str,
    uri: &str,
    fields: &[(&str, &str)],
) -> Result<Option<String>, Refusal> {
    let mut request = Request::new(());
    *request.version_mut() = version;
    *request.method_mut() = method.parse().unwrap();
    *request.uri_mut() = uri.parse().unwrap();
    for (name, value) in fields {
        let name: header::HeaderName = name.parse().unwrap();
        request
            .headers_mut()
            .append(name, HeaderValue::from_str(value).unwrap());
    }
    let present = Present::among(request.headers());
    check(&mut request, present)?;
    let host = request.headers().get(header::HOST);
    Ok(host.map(|host| host.to_str().unwrap().to_owned()))
}

fn http1(method: &str, uri: &str, fields: &[(&str, &str)]) -> Result<Option<String>, Refusal> {
    checked(
        Version::HTTP_11,
        method,
        uri,
        &[&[("host", "lb.test")], fields].concat(),
    )
}

fn hosted(host: &str) -> Result<Option<String>, Refusal> {
    checked(Version::HTTP_11, "GET", "/v1", &[("host", host)])
}

#[track_caller]
fn refused(result: Result<Option<String>, Refusal>, with: &str) {
    match result {
        Err(Refusal::BadRequest(why)) => assert_eq!(why, with),
        other => panic!("{other:?} instead of {with:?}"),
    }
}

// [HTTP-30]
#[test]
fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
    for host in [
        "a",
        "a.b-c_d.test",
        "127.0.0.1:80",
        "[::1]",
        "[2001:db8::1]:8443",
        "a:",
        "a:65535",
    ] {
        assert_eq!(hosted(host).unwrap().as_deref(), Some(host));
    }
    let wrong = [
        "", ":80", "a:65536", "a:8o", "a:+1", "user@a", "a,b", "a b", "a/b", "a?b", "[::1", "[a]", "[::1]x",
        "::1", "%61",
    ];
    for host in wrong {
        refused(hosted(host), "the host header is no host");
    }
}

// [HTTP-30]
#[test]
fn there_is_one_host_header_but_in_http_1_0() {
    let two = [("host", "a"), ("host", "a")];
    refused(
        checked(Version::HTTP_11, "GET", "/", &two),
        "there is more than one host header",
    );
    for uri in ["/", "http://a/"] {
        refused(
            checked(Version::HTTP_11, "GET", uri, &[]),
            "the host header is missing",
        );
    }
    assert_eq!(checked(Version::HTTP_10, "GET", "/", &[]).unwrap(), None);
}

// [HTTP-31]
#[test]
fn an_absolute_targets_authority_stands_over_the_host_header() {
    assert_eq!(
        http1("GET", "http://other.test:81/v1", &[]).unwrap().as_deref(),
        Some("other.test:81")
    );
    assert_eq!(
        http1("GET", "http://LB.test/v1", &[]).unwrap().as_deref(),
        Some("lb.test")
    );
    refused(
        http1("GET", "http://user@lb.test/v1", &[]),
        "the target's authority is no host",
    );
    refused(
        http1("GET", "ftp://lb.test/v1", &[]),
        "the target's scheme is not http or https",
    );
}

// [HTTP-32]
#[test]
fn a_target_begins_with_a_slash_and_a_star_is_for_options() {
    let slash = "the target does not begin with a slash";
    refused(http1("GET", "*", &[]), slash);
    refused(http1("GET", "lb.test:80", &[]), slash);
    assert!(http1("OPTIONS", "*", &[]).is_ok());
    let raw = "the target holds a character that must be percent-encoded";
    refused(http1("GET", "/caf\u{e9}", &[]), raw);
    refused(http1("GET", "/?caf\u{e9}", &[]), raw);
    for method in ["CONNECT", "TRACE"] {
        refused(http1(method, "/v1", &[]), "this method is not served here");
    }
}

// [HTTP-33]
#[test]
fn the_only_transfer_coding_is_chunked_once() {
    let coded = |value| http1("POST", "/v1", &[("transfer-encoding", value)]);
    assert!(coded("chunked").is_ok() && coded("Chunked").is_ok());
    for value in ["gzip, chunked", "identity,chunked"] {
        assert_eq!(coded(value), Err(Refusal::UnknownCoding), "{value}");
    }
    for value in [
        ",chunked",
        "chunked, chunked",
        "x y, chunked",
        "\"chunked\"",
        "xchunked",
    ] {
        refused(coded(value), "the transfer-encoding is not `chunked`");
    }
    let twice = [("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
    refused(
        http1("POST", "/v1", &twice),
        "there is more than one transfer-encoding",
    );
}

// [HTTP-34]
#[test]
fn an_upgrade_comes_without_a_body() {
    let upgrade = |field| {
        http1(
            "GET",
            "/v1",
            &[("upgrade", "websocket"), ("connection", "upgrade"), field],
        )
    };
    assert!(upgrade(("content-length", "0")).is_ok() && upgrade(("x", "y")).is_ok());
    for field in [("content-length", "1"), ("transfer-encoding", "chunked")] {
        refused(upgrade(field), "a request that asks for an upgrade has no body");
    }
}

// [HTTP-35]
#[test]
fn an_expectation_that_is_not_known_is_not_ignored() {
    assert!(http1("POST", "/v1", &[("expect", "100-Continue")]).is_ok());
    assert_eq!(
        http1("POST", "/v1", &[("expect", "a miracle")]),
        Err(Refusal::Expectation)
    );
}

// [HTTP-36]
#[test]
fn over_http2_host_and_authority_agree_and_values_stand_alone() {
    let http2 = |uri, fields: &[_]| checked(Version::HTTP_2, "POST", uri, fields);
    assert_eq!(
        http2("https://lb.test/v1", &[]).unwrap().as_deref(),
        Some("lb.test")
    );
    assert_eq!(
        http2("https://lb.test/v1", &[("host", "LB.test")])
            .unwrap()
            .as_deref(),
        Some("LB.test")
    );
    refused(
        http2("https://lb.test/v1", &[("host", "a")]),
        "host and :authority differ",
    );
    refused(
        http2("https://u:p@lb.test/v1", &[]),
        "the target's authority is no host",
    );
    refused(http2("/v1", &[]), "the host header is missing");
    for value in [" a", "a ", "\ta", "a\t", " "] {
        refused(
            http2("https://lb.test/v1", &[("x", value)]),
            "a header value begins or ends with a space",
        );
    }
}

// [HTTP-37]
#[test]
fn cookie_crumbs_of_http2_become_one_line() {
    let mut headers = HeaderMap::new();
    for crumb in ["a=1", "b=2", "c=3"] {
        headers.append(header::COOKIE, HeaderValue::from_static(crumb));
    }
    join_cookies(&mut headers);
    let lines: Vec<_> = headers.get_all(header::COOKIE).iter().collect();
    assert_eq!(lines, ["a=1; b=2; c=3"]);
}
