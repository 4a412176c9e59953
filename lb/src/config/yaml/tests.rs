use super::*;

fn scalar(text: &str) -> (String, bool) {
    let root = read(text).unwrap();
    let Form::Scalar(scalar) = &root.entries()[0].1.form else {
        panic!("not a scalar: {text}")
    };
    (scalar.text.clone(), scalar.plain)
}

#[test]
fn a_plain_value_keeps_its_spelling() {
    for word in [
        "007",
        "1e5",
        "true",
        "off",
        "0x10",
        "12:30",
        ".nan",
        "-5",
        "a b",
        "${X:-1}",
        "99999999999999999999",
    ] {
        assert_eq!(scalar(&format!("a: {word}\n")), (word.to_owned(), true));
    }
}

#[test]
fn quoted_and_folded_values_are_text() {
    assert_eq!(scalar("a: \"5\"\n"), ("5".to_owned(), false));
    assert_eq!(scalar("a: '5'\n"), ("5".to_owned(), false));
    assert_eq!(scalar("a: |\n  x\n  y\n"), ("x\ny\n".to_owned(), false));
    assert_eq!(scalar("a: x\n  y\n"), ("x y".to_owned(), false));
}

#[test]
fn places_are_byte_offsets_even_behind_wide_characters() {
    let text = "# ü\nkey: value\n";
    let root = read(text).unwrap();
    let (key, value) = &root.entries()[0];
    assert_eq!(&text[key.span.range()], "key");
    assert_eq!(&text[value.span.range()], "value");
    assert_eq!(root.span, Span { start: 5, end: 5 });
}

#[test]
fn an_alias_stands_for_what_it_names() {
    let root = read("a: &x {b: 1}\nc: *x\n").unwrap();
    assert!(root.entries()[0].1.means_the_same(&root.entries()[1].1));
}

#[test]
fn both_places_of_a_duplicate_key_are_shown() {
    let fault = read("a: 1\nb: 2\na: 3\n").err().unwrap();
    assert_eq!(fault.message, "key `a` is written twice");
    assert_eq!((fault.primary.span.start, fault.secondary[0].span.start), (10, 0));
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{},", level - 1).repeat(10);
        let items = before.trim_end_matches(',');
        let line = format!("a{level}: &a{level} [{items}]\n");
        bomb.push_str(&line);
    }
    assert!(read(&bomb).err().unwrap().message.starts_with("this is not YAML"));
}
