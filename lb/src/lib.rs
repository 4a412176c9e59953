//! lb
