use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[test]
fn the_parts_of_a_url_are_kept() {
    let u = url("https://API.Example:8443/v1/?api-version=1");
    assert_eq!(u.scheme(), Scheme::Https);
    assert_eq!(u.host(), &Host::Name("api.example".to_owned()));
    assert_eq!(
        (u.port(), u.path(), u.query()),
        (8443, "/v1", Some("api-version=1"))
    );
    assert_eq!(u.authority(), "api.example:8443");
    assert_eq!(u.to_string(), "https://api.example:8443/v1?api-version=1");
}

#[test]
fn the_schemes_own_port_is_left_out_of_the_authority() {
    assert_eq!(url("http://a").port(), 80);
    assert_eq!(url("https://a").port(), 443);
    assert_eq!(url("https://a:443/v1").authority(), "a");
    assert_eq!(url("http://a:443").authority(), "a:443");
}

#[test]
fn an_ipv6_host_stands_in_brackets() {
    let u = url("http://[2001:DB8::1]:8000/v1");
    assert_eq!(u.host(), &Host::Address("2001:db8::1".parse().unwrap()));
    assert_eq!(u.authority(), "[2001:db8::1]:8000");
    assert_eq!(url("http://[::1]").authority(), "[::1]");
}

#[test]
fn a_slash_at_the_end_means_the_same_as_none() {
    assert_eq!(url("http://a/v1/"), url("http://a/v1"));
    assert_eq!(url("http://a/").path(), "");
    assert_eq!(url("http://a?").query(), None);
}

// [NET-34]
#[test]
fn a_socket_file_may_have_a_path_behind_it() {
    for (text, path, query) in [
        ("unix:/run/vllm.sock", "", None),
        ("unix:/run/vllm.sock:/v1", "/v1", None),
        ("unix:/run/vllm.sock:/v1?a=b", "/v1", Some("a=b")),
    ] {
        let u = url(text);
        assert_eq!(u.host(), &Host::Socket("/run/vllm.sock".into()));
        assert_eq!((u.scheme(), u.path(), u.query()), (Scheme::Http, path, query));
        assert_eq!(
            (u.authority().as_str(), u.to_string().as_str()),
            ("localhost", text)
        );
        assert!(u.host().is_private());
    }
}

#[test]
fn each_fault_is_told_apart() {
    for (text, fault) in [
        ("gpu:8000", UrlFault::Scheme),
        ("gpu", UrlFault::Scheme),
        ("ftp://gpu", UrlFault::Scheme),
        ("http:/gpu", UrlFault::Scheme),
        ("unix:", UrlFault::Unix),
        ("unix:run/vllm.sock", UrlFault::Unix),
        ("unix:/run/", UrlFault::Unix),
        ("unix:/run/vllm.sock:v1", UrlFault::Unix),
        ("unix:/run/vllm.sock:/v1#x", UrlFault::Fragment),
        ("unix:/run/vllm.sock:/v 1", UrlFault::Illegal),
        ("http://", UrlFault::Host),
        ("http:///v1", UrlFault::Host),
        ("http://a..b", UrlFault::Host),
        ("http://[::1", UrlFault::Host),
        ("http://[::1]8000", UrlFault::Host),
        ("http://a b", UrlFault::Host),
        ("http://a:0", UrlFault::Port),
        ("http://a:", UrlFault::Port),
        ("http://a:+80", UrlFault::Port),
        ("http://a:70000", UrlFault::Port),
        ("http://u:p@a", UrlFault::UserInfo),
        ("http://a/v1#x", UrlFault::Fragment),
        ("http://a/v 1", UrlFault::Illegal),
    ] {
        assert_eq!(text.parse::<Url>(), Err(fault), "{text}");
    }
}

#[test]
fn a_private_host_is_one_that_public_networks_do_not_route_or_resolve() {
    for (text, private) in [
        ("http://127.0.0.1", true),
        ("http://10.1.2.3", true),
        ("http://8.8.8.8", false),
        ("http://[::1]", true),
        ("http://[fd00::1]", true),
        ("http://[2001:db8::1]", false),
        ("http://gpu", true),
        ("http://gpu.internal", true),
        ("http://vllm.default.svc", true),
        ("http://api.example.com", false),
    ] {
        assert_eq!(url(text).host().is_private(), private, "{text}");
    }
}
