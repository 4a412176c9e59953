//! TLS
