use http_body_util::BodyExt as _;

use super::*;

fn view(token: Option<&str>, draining: bool) -> View {
    View {
        token: ArcSwapOption::from_pointee(token.map(Token::new)),
        reload: Box::new(|| Box::pin(std::future::ready(Reloaded::Unavailable))),
        metrics: Box::new(|| "lb_build_info 1\n".to_owned()),
        state: Box::new(|| State {
            models: Vec::new(),
            providers: Vec::new(),
            cooldowns: Vec::new(),
            kernel: crate::upstream::KernelState::default(),
        }),
        checks: Box::new(move || {
            vec![
                Check {
                    name: "config",
                    ok: true,
                },
                Check {
                    name: "not-draining",
                    ok: !draining,
                },
            ]
        }),
    }
}

fn ask(view: &View, path: &str, fields: &[(&'static str, &str)]) -> (u16, String) {
    let mut request = Request::get(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let response = runtime.block_on(view.answer(&request));
    let status = response.status().as_u16();
    let body = runtime
        .block_on(response.into_body().collect())
        .unwrap()
        .to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

const LOCAL: (&str, &str) = ("host", "127.0.0.1:9901");

// [ADMIN-2]
#[test]
fn readiness_is_said_by_the_status_and_explained_when_asked() {
    let (ready, draining) = (view(None, false), view(None, true));
    assert_eq!(ask(&ready, "/readyz", &[]), (200, "ok\n".to_owned()));
    assert_eq!(ask(&draining, "/readyz", &[]), (503, "not ready\n".to_owned()));
    assert_eq!(
        ask(&draining, "/readyz?verbose", &[]),
        (503, "[+]config ok\n[-]not-draining failed\n".to_owned())
    );
    assert_eq!(ask(&draining, "/livez", &[]), (200, "ok\n".to_owned()));
}

// [ADMIN-11]
#[test]
fn everything_but_the_probes_needs_the_token() {
    let view = view(Some("secret\n"), false);
    assert_eq!(ask(&view, "/metrics", &[LOCAL]).0, 401);
    assert_eq!(
        ask(&view, "/metrics", &[("authorization", "Bearer secre")]).0,
        401
    );
    assert_eq!(
        ask(&view, "/metrics", &[("authorization", "bearer secret")]),
        (200, "lb_build_info 1\n".to_owned())
    );
    assert_eq!(ask(&view, "/readyz", &[]).0, 200);
    assert_eq!(format!("{view:?}"), "View { token: Some(Token(set)), .. }");
}

// [ADMIN-12]
#[test]
fn without_a_token_only_a_loopback_name_is_answered_and_no_foreign_page() {
    let view = view(None, false);
    for host in [
        "127.0.0.1:9901",
        "127.8.9.1",
        "localhost:9901",
        "LocalHost",
        "[::1]:9901",
        "[0:0::1]",
    ] {
        assert_eq!(ask(&view, "/api/v1/state", &[("host", host)]).0, 200, "{host}");
    }
    for host in [
        "rebound.example:9901",
        "192.0.2.1",
        "",
        "127.0.0.1.rebound.example:9901",
        "127.rebound.example",
        "127.1",
        "localhost.rebound.example",
        "[::2]:9901",
        "[127.0.0.1]",
        "::1",
    ] {
        assert_eq!(ask(&view, "/api/v1/state", &[("host", host)]).0, 403, "{host}");
    }
    assert_eq!(
        ask(
            &view,
            "/api/v1/state",
            &[LOCAL, ("origin", "https://rebound.example")]
        )
        .0,
        403
    );
}

#[test]
fn what_is_not_there_is_said_in_the_apis_form() {
    let (status, body) = ask(&view(None, false), "/api/v1/nothing", &[LOCAL]);
    assert_eq!(status, 404);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["code"], "not_found");
}
