use super::*;

fn read(text: &str) -> Result<Option<&str>, ()> {
    let found = name(text.as_bytes())?;
    Ok(found.map(|name| std::str::from_utf8(name).expect("it is of the text")))
}

// [ENV-8]
#[test]
fn a_name_that_all_read_alike_is_found() {
    for (text, found) in [
        (r#"form-data; name="model""#, Some("model")),
        (r"form-data; alone; Name = model ; x=y", Some("model")),
        (r#"form-data; filename="a;name=x"; name="file""#, Some("file")),
        (r#"form-data; name=file; filename="a\"b.wav""#, Some("file")),
        (r#"form-data; name="file"; filename="C:\dir\a.wav""#, Some("file")),
        (r#"form-data; name="file"; filename*=UTF-8''a"#, Some("file")),
        (r#"form-data; names="a"; nam="b""#, None),
        ("form-data", None),
        ("form-data;", None),
    ] {
        assert_eq!(read(text), Ok(found), "{text}");
    }
}

// [ENV-8]
#[test]
fn a_name_that_two_may_read_in_two_ways_is_none() {
    for text in [
        r#"form-data; name="x"; name="model""#,
        r"form-data; name=model; NAME=x",
        r#"form-data; name="x"; name*=utf-8''model"#,
        r"form-data; name*=utf-8''model",
        r#"form-data; name*0="mod"; name*1="el""#,
        r#"form-data; name="mo\del""#,
        r#"form-data; filename="a\"; name="model"; x="\"; name="y""#,
        r#"form-data; name="model"#,
        r#"form-data; name="model\""#,
    ] {
        assert_eq!(read(text), Err(()), "{text}");
    }
}
