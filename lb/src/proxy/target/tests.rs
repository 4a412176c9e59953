use super::*;

fn model(request: &str, url: &str, model: Option<&str>) -> String {
    let request = request.parse().expect("a target");
    of_model(&request, &url.parse().expect("a URL"), model).to_string()
}

fn provider(request: &str, url: &str) -> String {
    let request = request.parse().expect("a target");
    of_provider(&request, &url.parse().expect("a URL")).to_string()
}

// [PROXY-7]
#[test]
fn the_endpoints_path_takes_the_place_of_v1() {
    let chat = "/v1/chat/completions";
    let cases = [
        (chat, "http://gpu:8000/v1", chat),
        (chat, "http://gpu:8000", chat),
        (
            chat,
            "https://h/openai/deployments/d",
            "/openai/deployments/d/chat/completions",
        ),
        ("/v1", "http://h/api", "/api"),
        ("/v1beta/x", "http://h/api", "/v1beta/x"),
    ];
    for (request, url, asked) in cases {
        assert_eq!(model(request, url, None), asked, "{request} at {url}");
    }
}

// [PROXY-8]
#[test]
fn the_endpoints_query_comes_after_the_clients() {
    assert_eq!(
        model("/v1/x?a=1", "https://h/v1?api-version=2", None),
        "/v1/x?a=1&api-version=2"
    );
    assert_eq!(
        model("/v1/x", "https://h/v1?api-version=2", None),
        "/v1/x?api-version=2"
    );
    assert_eq!(provider("/x?a=1", "https://h?k=2"), "/x?a=1&k=2");
}

// [ROUTE-14]
#[test]
fn a_request_straight_to_a_provider_keeps_its_path() {
    assert_eq!(provider("/v1/files?a=1", "https://h/v1/deep"), "/v1/files?a=1");
    assert_eq!(provider("*", "https://h/deep"), "*");
}

// [PROXY-14]
#[test]
fn a_model_in_the_query_is_named_as_the_provider_names_it() {
    let url = "https://h/v1?k=1";
    assert_eq!(
        model("/v1/realtime?model=a", url, Some("b/c d&")),
        "/v1/realtime?model=b/c%20d%26&k=1"
    );
}
