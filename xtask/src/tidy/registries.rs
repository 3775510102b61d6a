//! No page and no file names the host of a package registry.

use super::House;

/// Hosts of package registries, split so that this very file does not name one.
const REGISTRIES: &[(&str, &str)] =
    &[("crates", ".io/"), ("npmjs", ".org"), ("pypi", ".org"), ("maven", ".org"), ("proxy.golang", ".org"), ("deb.debian", ".org")];

pub(super) fn registries(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in &house.files {
        for (host, end) in REGISTRIES {
            if file.text.contains(&format!("{host}{end}")) {
                found.push(file.finding(1, &format!("names a package registry ({host})")));
            }
        }
    }
    found
}
