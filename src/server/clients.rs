//! What is known about particular clients; nothing else in the server asks who is calling.

use crate::config::StructuredContent;

/// Clients that hand the model `structuredContent` in place of the text, by the beginning of
/// `clientInfo.name`. Every call record, with its arguments, would land in the model's context.
const SHOW_STRUCTURE_TO_THE_MODEL: [Name; 3] = [
    Name::StartsWith("claude-code"),
    Name::StartsWith("codex"),
    Name::Is("Visual Studio Code"),
];

enum Name {
    StartsWith(&'static str),
    Is(&'static str),
}

impl Name {
    fn matches(&self, client: &str) -> bool {
        match self {
            Self::StartsWith(prefix) => client.starts_with(prefix),
            Self::Is(name) => client == *name,
        }
    }
}

/// Whether results for this client carry `structuredContent`, and the tool its `outputSchema`.
pub(crate) fn wants_structure(setting: StructuredContent, client: Option<&str>) -> bool {
    match setting {
        StructuredContent::Always => true,
        StructuredContent::Never => false,
        StructuredContent::Auto => {
            let client = client.unwrap_or_default();
            !SHOW_STRUCTURE_TO_THE_MODEL
                .iter()
                .any(|name| name.matches(client))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S7
    #[test]
    fn structure_is_kept_from_clients_that_show_it_to_the_model() {
        let cases = [
            (Some("claude-code"), false),
            (Some("claude-code/2.1.332"), false),
            (Some("codex-mcp-client"), false),
            (Some("Visual Studio Code"), false),
            (Some("Visual Studio Code - Insiders"), true),
            (Some("claude-ai"), true),
            (Some("mcp"), true),
            (Some("my-codex"), true),
            (None, true),
        ];
        for (client, wanted) in cases {
            assert_eq!(
                wants_structure(StructuredContent::Auto, client),
                wanted,
                "{client:?}"
            );
            assert!(wants_structure(StructuredContent::Always, client));
            assert!(!wants_structure(StructuredContent::Never, client));
        }
    }
}
