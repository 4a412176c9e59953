use http::{HeaderName, HeaderValue};

use super::*;
use crate::config::{self, HostPattern, To as ConfigTo};
use crate::upstream::To;

fn route(matches: Match, rewrite_prefix: Option<&str>) -> Arc<Route> {
    Arc::new(Route {
        config: config::Route {
            matches,
            to: ConfigTo::Models,
            default_model: None,
            rewrite_prefix: rewrite_prefix.map(str::to_owned),
            request_headers: HeaderChanges::default(),
            response_headers: HeaderChanges::default(),
        },
        to: To::Models,
    })
}

fn prefix(path: &str) -> Match {
    Match {
        path_prefix: path.to_owned(),
        ..Match::default()
    }
}

/// Which route takes a request, and with which target it goes on.
fn found(
    routes: &[Arc<Route>],
    uri: &str,
    fields: &[(&'static str, &'static str)],
) -> Option<(usize, String)> {
    let mut request = Request::new(());
    *request.uri_mut() = uri.parse().expect("a URI");
    for (name, value) in fields {
        let value = HeaderValue::from_static(value);
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    let route = find(routes, &mut request).ok()?;
    let place = routes.iter().position(|known| Arc::ptr_eq(known, route))?;
    Some((place, request.uri().path_and_query()?.to_string()))
}

// [ROUTE-12]
#[test]
fn the_first_route_that_fits_in_everything_takes_a_request() {
    let team = (HeaderName::from_static("x-team"), HeaderValue::from_static("a"));
    let routes = [
        route(
            Match {
                host: Some(HostPattern::Exact("app.test".into())),
                headers: vec![team],
                ..prefix("/v1")
            },
            None,
        ),
        route(
            Match {
                host: Some(HostPattern::Under(".test".into())),
                ..Match::default()
            },
            None,
        ),
        route(prefix("/v1"), None),
    ];
    let place =
        |uri, fields: &[(&'static str, &'static str)]| found(&routes, uri, fields).map(|(place, _)| place);
    assert_eq!(
        place("/v1/x", &[("host", "APP.test:80"), ("x-team", "a")]),
        Some(0)
    );
    assert_eq!(
        place("/v1/x", &[("host", "app.test"), ("x-team", "b"), ("x-team", "a")]),
        Some(0)
    );
    assert_eq!(place("/v1/x", &[("host", "app.test"), ("x-team", "A")]), Some(1));
    assert_eq!(place("/v2", &[("host", "app.test"), ("x-team", "a")]), Some(1));
    assert_eq!(place("/v1", &[("host", "other")]), Some(2));
    assert_eq!(place("/v1", &[]), Some(2));
    assert_eq!(place("/v2", &[("host", "[::1]:80")]), None);
}

// [ROUTE-13]
#[test]
fn a_prefix_is_rewritten_and_the_query_stays() {
    let rewriting = |from: &str, to: &str, uri: &str| {
        found(&[route(prefix(from), Some(to))], uri, &[]).map(|(_, target)| target)
    };
    assert_eq!(
        rewriting("/openai", "/v1", "/openai/models?a=1").as_deref(),
        Some("/v1/models?a=1")
    );
    assert_eq!(rewriting("/app", "", "/app").as_deref(), Some("/"));
    assert_eq!(rewriting("/app", "", "/app/x").as_deref(), Some("/x"));
    assert_eq!(rewriting("", "/deep", "/x%2F?y").as_deref(), Some("/deep/x%2F?y"));
}

// [ROUTE-13]
#[test]
fn fields_are_set_and_removed() {
    let mut headers = HeaderMap::new();
    headers.append("server", HeaderValue::from_static("x"));
    headers.append("a", HeaderValue::from_static("1"));
    headers.append("a", HeaderValue::from_static("2"));
    let changes = HeaderChanges {
        remove: vec![header::SERVER],
        set: vec![(HeaderName::from_static("a"), HeaderValue::from_static("3"))],
    };
    change(&mut headers, &changes);
    let left: Vec<_> = headers.iter().collect();
    assert_eq!(
        left,
        [(&HeaderName::from_static("a"), &HeaderValue::from_static("3"))]
    );
}
