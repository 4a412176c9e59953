//! Reads secrets from their files.

use std::path::Path;

use http::HeaderValue;

use super::StartError;
use crate::admin::Token;
use crate::config::{Admin, ApiKey, Auth, AuthHeader, Config};
use crate::proxy::{self, ClientKeys};

/// What the files with secrets hold.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    pub(super) providers: Vec<Option<HeaderValue>>,
    pub(super) clients: ClientKeys,
}

impl Secrets {
    pub(super) fn read(config: &Config) -> Result<Self, StartError> {
        Ok(Self {
            providers: of_providers(config)?,
            clients: of_clients(&config.auth)?,
        })
    }
}

/// The header value of each provider's key, in the configuration's order.
fn of_providers(config: &Config) -> Result<Vec<Option<HeaderValue>>, StartError> {
    config
        .providers
        .iter()
        .map(|provider| {
            let what = || format!("the key of provider `{}`", provider.name);
            let key = match &provider.api_key {
                None => return Ok(None),
                Some(ApiKey::Inline(secret)) => secret.expose().to_owned(),
                Some(ApiKey::File(path)) => read(&what(), path)?,
            };
            if key.is_empty() {
                return Ok(None);
            }
            let sent = match provider.auth_header {
                AuthHeader::Authorization => format!("Bearer {key}"),
                AuthHeader::ApiKey | AuthHeader::XApiKey => key,
            };
            let mut value = HeaderValue::from_str(&sent).map_err(|_invalid| StartError::File {
                what: what(),
                path: provider.api_key.as_ref().map(place).unwrap_or_default(),
                reason: "holds a character that no header may carry".to_owned(),
            })?;
            value.set_sensitive(true);
            Ok(Some(value))
        })
        .collect()
}

/// The digests of the client keys.
fn of_clients(auth: &Auth) -> Result<ClientKeys, StartError> {
    let one = |key: &crate::config::ClientKey| {
        let what = format!("client key `{}`", key.name);
        let text = read(&what, &key.sha256_file)?;
        // `sha256sum` writes the file's name behind the digest.
        let digest = text
            .split_whitespace()
            .next()
            .and_then(digest)
            .ok_or_else(|| StartError::File {
                what,
                path: key.sha256_file.clone(),
                reason: "is not a SHA-256 in hexadecimal; make it with `printf %s \"$KEY\" | sha256sum`"
                    .to_owned(),
            })?;
        Ok(proxy::ClientKey {
            name: key.name.as_str().into(),
            digest,
            models: key.models.clone(),
        })
    };
    Ok(ClientKeys::new(
        auth.required,
        auth.keys.iter().map(one).collect::<Result<_, _>>()?,
    ))
}

/// The admin listener's token.
pub(super) fn admin_token(admin: &Admin) -> Result<Option<Token>, StartError> {
    let path = admin.token_file.as_deref();
    path.map(|path| Ok(Token::new(&read("the admin token", path)?)))
        .transpose()
}

fn read(what: &str, path: &Path) -> Result<String, StartError> {
    let text = std::fs::read_to_string(path).map_err(|error| StartError::File {
        what: what.to_owned(),
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn place(key: &ApiKey) -> std::path::PathBuf {
    match key {
        ApiKey::File(path) => path.clone(),
        ApiKey::Inline(_) => "the configuration".into(),
    }
}

/// 64 hexadecimal digits as 32 bytes.
fn digest(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
