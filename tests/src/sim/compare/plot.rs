//! The comparison as a picture: a small SVG by hand, since what it needs is a dozen lines and a legend.

use std::fmt::Write as _;

use super::cell::SLOT;
use super::{Cell, Trouble, Way};

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 170.0;
const MARGIN: f64 = 34.0;
const COLUMNS: usize = 2;
const COLOURS: [&str; Way::ALL.len()] = ["#0b6e4f", "#c1121f", "#8d99ae", "#e09f3e"];

/// One panel for each kind of trouble: the part of requests that begin at the preferred provider, over time, at the
/// first seed.
pub fn svg(cells: &[Cell]) -> String {
    let rows = (Trouble::ALL.len() + 1).div_ceil(COLUMNS);
    let (width, height) = (WIDTH * real(COLUMNS), HEIGHT * real(rows));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>Part of requests that begin at the preferred provider</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let all = cells.chunks(Way::ALL.len());
    for (place, (trouble, cells)) in Trouble::ALL.into_iter().zip(all).enumerate() {
        text.push_str(&panel(place, trouble, cells));
    }
    text.push_str(&legend(Trouble::ALL.len()));
    text.push_str("</svg>\n");
    text
}

fn panel(place: usize, trouble: Trouble, cells: &[Cell]) -> String {
    let (left, top, right, bottom) = frame(place);
    let minutes = Trouble::length().as_secs_f64() / 60.0;
    let x = |minute: f64| left + (right - left) * minute / minutes;
    let y = |part: f64| bottom - (bottom - top) * part;
    let mut text = format!(
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}</text>\n",
        top - 6.0,
        trouble.name()
    );
    for (part, label) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
        let at = y(part);
        line(&mut text, (left, at), (right, at), "#dddddd");
        write(
            &mut text,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
                left - 3.0,
                at + 4.0
            ),
        );
    }
    for minute in [0.0, 5.0, 10.0, 15.0, 20.0] {
        write(
            &mut text,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{minute} min</text>\n",
                x(minute),
                bottom + 13.0
            ),
        );
    }
    let from = x(trouble.from().as_secs_f64() / 60.0);
    line(&mut text, (from, top), (from, bottom), "#999999");
    // lb's own comes last, so that it lies on top.
    for (cell, colour) in cells.iter().zip(COLOURS).rev() {
        let slot = SLOT.as_secs_f64() / 60.0;
        let points = cell.series.iter().enumerate();
        let points: Vec<_> = points
            .map(|(place, part)| format!("{:.1},{:.1}", x((real(place) + 0.5) * slot), y(*part)))
            .collect();
        write(
            &mut text,
            format_args!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" points=\"{}\"/>\n",
                points.join(" ")
            ),
        );
    }
    text
}

fn legend(place: usize) -> String {
    let (left, top, ..) = frame(place);
    let mut text = String::new();
    for (row, (way, colour)) in Way::ALL.into_iter().zip(COLOURS).enumerate() {
        let at = top + 14.0 + 18.0 * real(row);
        write(
            &mut text,
            format_args!(
                "<rect x=\"{left}\" y=\"{:.1}\" width=\"18\" height=\"3\" fill=\"{colour}\"/>\n",
                at - 5.0
            ),
        );
        write(
            &mut text,
            format_args!(
                "<text x=\"{}\" y=\"{at:.1}\">{}</text>\n",
                left + 26.0,
                way.name()
            ),
        );
    }
    text
}

/// Left, top, right and bottom of the panel in that place.
fn frame(place: usize) -> (f64, f64, f64, f64) {
    let left = WIDTH * real(place % COLUMNS) + MARGIN + 6.0;
    let top = HEIGHT * real(place / COLUMNS) + 24.0;
    (left, top, left + WIDTH - MARGIN - 24.0, top + HEIGHT - 46.0)
}

fn line(text: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    write(
        text,
        format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\n",
            from.0, from.1, to.0, to.1
        ),
    );
}

fn write(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("writing to a string cannot fail");
}

#[expect(clippy::cast_precision_loss, reason = "some dozens")]
fn real(count: usize) -> f64 {
    count as f64
}
