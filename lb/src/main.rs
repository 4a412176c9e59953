//! lb
fn main() {}
