//! A run as text.

use std::fmt::Write as _;

use super::Record;

/// The share over time, one line a minute: a bar, the share, and the preferred provider's requests in flight.
pub fn table(record: &Record) -> String {
    let mut text = String::from("  time  share                                          in flight\n");
    for (at, share, in_flight) in record.series.iter().step_by(4) {
        let seconds = at.as_secs();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share in [0, 1]"
        )]
        let bar = "#".repeat((share * 40.0).round() as usize);
        let line = format_args!(
            "{:>3}:{:02}  {share:.2} {bar:<40} {in_flight:>9}\n",
            seconds / 60,
            seconds % 60
        );
        text.write_fmt(line).expect("writing to a string cannot fail");
    }
    text
}
