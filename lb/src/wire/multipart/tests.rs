use std::fmt::Write as _;

use super::*;

fn form(parts: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (head, value) in parts {
        write!(text, "--b0\r\n{head}\r\n\r\n{value}\r\n").expect("a String takes everything");
    }
    text + "--b0--\r\n"
}

fn field(name: &str) -> String {
    format!("content-disposition: form-data; name=\"{name}\"")
}

fn read(body: &[u8], cut: usize) -> Result<Fields, FormError> {
    let mut form = Form::new(b"b0");
    for chunk in body.chunks(cut.max(1)) {
        form.feed(chunk)?;
    }
    form.finish()
}

// [ENV-7]
#[test]
fn the_parts_model_and_stream_are_found_wherever_they_stand_and_however_the_body_is_cut() {
    let file =
        "Content-Type: audio/wav\r\nContent-Disposition: form-data; filename=\"a;name=model\"; name=\"file\"";
    let noise = "\r\n--b\r\n--b1 name=\"model\"\r\n-".repeat(40);
    let cases = [
        form(&[
            (&field("model"), "whisper-1"),
            (file, &noise),
            (&field("stream"), "true"),
        ]),
        form(&[
            (file, &noise),
            (&field("stream"), "true"),
            (&field("model"), "whisper-1"),
        ]),
        format!(
            "a preamble\r\n{}an epilogue --b0",
            form(&[
                ("CONTENT-DISPOSITION: form-data; Name=model", "whisper-1"),
                (&field("stream"), "true"),
            ])
        ),
    ];
    for body in cases {
        for cut in [1, 2, 3, 5, 7, 64, 1000, body.len()] {
            let found = read(body.as_bytes(), cut).expect("a form");
            assert_eq!(found.model.as_deref(), Some("whisper-1"), "cut at {cut}: {body}");
            assert_eq!(&body[found.model_span.clone()], "whisper-1", "cut at {cut}");
            assert!(found.stream);
        }
    }
}

// [ENV-7]
#[test]
fn a_form_without_them_names_nothing() {
    let body = form(&[
        (&field("models"), "a"),
        (&field("stream"), "True"),
        ("x: y", ""),
        (&field("c"), ""),
    ]);
    for cut in 1..body.len() {
        assert_eq!(read(body.as_bytes(), cut), Ok(Fields::default()));
    }
}

// [ENV-7]
#[test]
fn an_empty_value_is_a_value() {
    let body = form(&[(&field("model"), "")]);
    let found = read(body.as_bytes(), 1).expect("a form");
    assert_eq!((found.model.as_deref(), found.model_span.len()), (Some(""), 0));
}

// [ENV-7]
#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    let model = field("model");
    let twice = form(&[(&model, "a"), (&model, "b")]);
    let streams = form(&[(&field("stream"), "true"), (&field("stream"), "false")]);
    let long = form(&[(&model, &"m".repeat(MODEL_BYTES + 1))]);
    let head = form(&[(&format!("x: {}", "y".repeat(HEAD_BYTES)), "")]);
    let good = form(&[(&model, "a")]);
    for cut in [1, 10, 100_000] {
        assert_eq!(read(twice.as_bytes(), cut), Err(FormError::Duplicate("model")));
        assert_eq!(read(streams.as_bytes(), cut), Err(FormError::Duplicate("stream")));
        assert_eq!(read(long.as_bytes(), cut), Err(FormError::NotModel));
        assert_eq!(read(head.as_bytes(), cut), Err(FormError::LongHead));
        for length in 0..good.len() - 4 {
            assert!(
                read(&good.as_bytes()[..length], cut).is_err(),
                "{length} bytes of {good:?}"
            );
        }
        let invalid = form(&[(&model, "a")]).replace("\r\n\r\na", "\r\n\r\n\u{1}");
        assert!(
            read(invalid.as_bytes(), cut).is_ok(),
            "what a name may be is not this module's question"
        );
        assert!(read(b"--b0x\r\n\r\n", cut).is_err());
    }
    assert_eq!(
        read(
            b"--b0\r\ncontent-disposition: form-data; name=model\r\n\r\n\xff\r\n--b0--",
            9
        ),
        Err(FormError::NotModel)
    );
}

// [ENV-8]
#[test]
fn a_part_that_has_another_name_to_others_is_refused() {
    let hidden = [
        "content-disposition: form-data; name=\"x\"; name=\"model\"",
        "content-disposition: form-data; name=x\r\nContent-Disposition: form-data; name=model",
        "content-disposition: form-data; name*=utf-8''model",
    ];
    for head in hidden {
        let body = form(&[(&field("model"), "a"), (head, "b")]);
        for cut in [1, 9, body.len()] {
            let refused = read(body.as_bytes(), cut);
            assert!(
                matches!(refused, Err(FormError::TwoNames { .. })),
                "{head}: {refused:?}"
            );
        }
    }
}

// [ENV-8]
#[test]
fn a_part_that_begins_behind_another_line_end_is_refused() {
    let hidden = "--b0\ncontent-disposition: form-data; name=\"model\"\n\nb\n";
    let good = form(&[(&field("model"), "a"), (&field("x"), "y")]);
    for end in ["\n", "\r"] {
        let hidden = hidden.replace('\n', end);
        for body in [
            format!("x{end}{hidden}{good}"),
            good.replace('y', &format!("y{end}{hidden}")),
            good.replace("\r\n\r\na", &format!("\r\n\r\na{end}{hidden}")),
        ] {
            for cut in [1, 9, body.len()] {
                let refused = read(body.as_bytes(), cut);
                assert!(
                    matches!(refused, Err(FormError::NotForm { .. })),
                    "{body:?}: {refused:?}"
                );
            }
        }
        // Not at the start of a line it is nothing.
        let harmless = good.replace('y', "y--b0\ncontent-disposition");
        assert!(read(harmless.as_bytes(), 1).is_ok());
    }
}

// [ENV-7]
#[test]
fn a_file_is_never_held() {
    let mut form = Form::new(b"b0");
    form.feed(format!("--b0\r\n{}\r\n\r\n", field("file")).as_bytes())
        .expect("a form");
    for _ in 0..1000 {
        form.feed(&[b'\r'; 5000]).expect("a form");
        assert!(form.held.len() < 10);
    }
}

// [ENV-7]
#[test]
fn the_boundary_is_read_from_the_content_type() {
    let good: [(&str, &str); 4] = [
        ("multipart/form-data; boundary=abc", "abc"),
        ("Multipart/Form-Data;charset=utf-8; Boundary=\"a b\"", "a b"),
        (
            "multipart/form-data; boundary=----WebKitFormBoundary7MA",
            "----WebKitFormBoundary7MA",
        ),
        ("multipart/form-data;boundary=a=b", "a=b"),
    ];
    for (text, name) in good {
        assert_eq!(boundary(text.as_bytes()), Some(Ok(name.as_bytes())), "{text}");
    }
    let long = format!("multipart/form-data; boundary={}", "a".repeat(71));
    for text in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=a; Boundary*=utf-8''b",
        "multipart/form-data; boundary*0=a; boundary*1=b",
        &long,
    ] {
        assert_eq!(
            boundary(text.as_bytes()),
            Some(Err(FormError::NoBoundary)),
            "{text}"
        );
    }
    assert_eq!(boundary(b"multipart/mixed; boundary=a"), None);
    assert_eq!(boundary(b"application/json"), None);
}

// [ENV-7]
#[test]
fn what_follows_the_end_and_odd_heads_of_parts_are_read_past() {
    let body = form(&[
        (
            "content-disposition: form-data; alone; name=\"model\"",
            "whisper-1",
        ),
        ("x: y", "a part without a disposition"),
    ]);
    for cut in [1, 7, body.len()] {
        let mut form = Form::new(b"b0");
        for chunk in body.as_bytes().chunks(cut) {
            form.feed(chunk).expect("a form");
        }
        form.feed(b"an epilogue").expect("it is no part");
        assert_eq!(form.fields().model.as_deref(), Some("whisper-1"));
        assert!(form.finish().is_ok());
    }
    let broken = "--b0\r\nno field\r\n\r\nx\r\n--b0--\r\n";
    assert!(matches!(
        read(broken.as_bytes(), 1),
        Err(FormError::NotForm { .. })
    ));
}

#[test]
fn each_fault_says_what_it_is() {
    let told = [
        (FormError::Duplicate("model"), "a second part `model`"),
        (FormError::NoBoundary, "names no boundary"),
        (FormError::NotForm { at: 7 }, "at byte 7"),
        (FormError::NotModel, "`model` is no name"),
        (FormError::TwoNames { at: 9 }, "before byte 9 has no clear `name`"),
        (FormError::LongHead, "longer than 8192 bytes"),
    ];
    for (fault, part) in told {
        assert!(fault.to_string().contains(part), "{fault}");
    }
}
