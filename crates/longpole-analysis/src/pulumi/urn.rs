//! URNs of cloud resources: their parts, and the attributes of spans that name them.
//!
//! ```text
//! urn:pulumi:dev::shop::my:Site$aws:s3:Bucket::web
//!            stack project  parent$type        name
//! ```

use longpole_model::resource_event::{DEPENDENCIES, PARENT, PROVIDER, URN};
use longpole_model::{AttributeValue, Span};

/// The last part of a URN: what people call the resource.
pub fn name_of_urn(urn: &str) -> &str {
    urn.splitn(4, "::").nth(3).unwrap_or(urn)
}

/// The type in a URN, without those of its parents.
pub fn type_of_urn(urn: &str) -> &str {
    urn.split("::").nth(2).map_or("", |types| types.rsplit('$').next().unwrap_or(types))
}

/// `aws:rds/instance:Instance db`: short enough for a table, and still telling.
pub fn title_of_urn(urn: &str) -> String {
    format!("{} {}", type_of_urn(urn), name_of_urn(urn)).trim().to_owned()
}

/// The name in such a title, without the type.
pub fn name_of_title(title: &str) -> &str {
    title.split_once(' ').map_or(title, |(_, name)| name)
}

/// URNs that an attribute lists.
fn listed(value: Option<&AttributeValue>) -> Vec<&str> {
    match value {
        Some(AttributeValue::Str(text)) => text.split(',').map(str::trim).filter(|t| !t.is_empty()).collect(),
        Some(AttributeValue::Array(items)) => items.iter().filter_map(AttributeValue::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The resource that a span says it works on.
pub fn urn_of(span: &Span) -> Option<&str> {
    span.attributes.get_str(URN).filter(|urn| !urn.is_empty())
}

/// What a span needs to be there before: its dependencies, its parent, its provider.
pub(crate) fn needs_of(span: &Span) -> impl Iterator<Item = &str> {
    let attributes = &span.attributes;
    listed(attributes.get(DEPENDENCIES)).into_iter().chain(attributes.get_str(PARENT)).chain(attributes.get_str(PROVIDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urns_have_a_type_and_a_name() {
        let web = "urn:pulumi:dev::shop::my:Site$aws:s3:Bucket::web";
        assert_eq!((type_of_urn(web), name_of_urn(web)), ("aws:s3:Bucket", "web"));
        assert_eq!(name_of_urn("urn:pulumi:dev::shop::a:b:C::odd::name"), "odd::name");
        assert_eq!((type_of_urn("odd"), title_of_urn("odd")), ("", "odd".to_owned()));
        assert_eq!((name_of_title("aws:s3:Bucket web"), name_of_title("web")), ("web", "web"));
    }
}
