//! Keystone's service catalog, and the choice of an endpoint from it.

use std::collections::BTreeSet;

use openstack::{EndpointFilters, Error, ErrorKind, InterfaceType};
use serde::Deserialize;
use url::Url;

use super::service::http_url;

/// The services and endpoints that came with a token. Clouds leave out or null about everything here.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Catalog(Vec<CatalogService>);

#[derive(Debug, Deserialize)]
struct CatalogService {
    r#type: Option<String>,
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    interface: Option<String>,
    // The same as `region`, which is its older name.
    region_id: Option<String>,
    region: Option<String>,
    url: Option<String>,
}

impl Endpoint {
    fn region(&self) -> Option<&str> {
        self.region_id
            .as_deref()
            .or(self.region.as_deref())
            .filter(|region| !region.is_empty())
    }

    fn has_interface(&self, wanted: InterfaceType) -> bool {
        self.interface.as_deref().and_then(|text| text.parse().ok()) == Some(wanted)
    }
}

/// The official spelling of a service type.
fn official(service_type: &str) -> String {
    match service_type.to_ascii_lowercase().replace('_', "-").as_str() {
        "bare-metal" => "baremetal".to_owned(),
        "computev21" => "compute".to_owned(),
        other => other.to_owned(),
    }
}

impl Catalog {
    /// The endpoint of a service: of the first of the interfaces that has one in the region.
    ///
    /// Where several regions fit and none is named, that is an error rather than a guess.
    pub(super) fn find(&self, service_type: &str, filters: &EndpointFilters) -> Result<Url, Error> {
        let endpoints = self.endpoints_of(service_type)?;
        for interface in filters.interfaces.iter() {
            let mut fitting = endpoints.iter().filter(|endpoint| {
                endpoint.has_interface(*interface)
                    && filters
                        .region
                        .as_deref()
                        .is_none_or(|wanted| endpoint.region() == Some(wanted))
            });
            let Some(first) = fitting.next() else { continue };
            if fitting.any(|other| other.region() != first.region()) {
                let regions = names(endpoints.iter().filter_map(|endpoint| endpoint.region()));
                return Err(not_found(format!(
                    "the catalog has `{service_type}` in the regions {regions}: set region_name"
                )));
            }
            let url = first.url.as_deref().unwrap_or_default();
            return http_url(url).map_err(|problem| {
                not_found(format!(
                    "the catalog's URL of `{service_type}` is unusable: {problem}"
                ))
            });
        }
        let interfaces = filters
            .interfaces
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let region = filters
            .region
            .as_deref()
            .map_or("any region".to_owned(), |name| format!("region {name}"));
        let there = names(endpoints.iter().map(|endpoint| {
            let interface = endpoint.interface.as_deref().unwrap_or("no");
            format!(
                "{interface} interface in {}",
                endpoint.region().unwrap_or("no region")
            )
        }));
        Err(not_found(format!(
            "the catalog has no `{service_type}` with the {interfaces} interface in {region}; there is: {there}"
        )))
    }

    fn endpoints_of(&self, service_type: &str) -> Result<Vec<&Endpoint>, Error> {
        if self.0.is_empty() {
            return Err(not_found(format!(
                "the login brought no catalog (an unscoped one has none): \
                 set a scope or {service_type}_endpoint_override"
            )));
        }
        let wanted = official(service_type);
        let services: Vec<_> = self
            .0
            .iter()
            .filter(|service| {
                service
                    .r#type
                    .as_deref()
                    .is_some_and(|own| official(own) == wanted)
            })
            .collect();
        if services.is_empty() {
            let types = names(self.0.iter().filter_map(|service| service.r#type.as_deref()));
            return Err(not_found(format!(
                "the catalog has no service of the type `{service_type}`; there are: {types}"
            )));
        }
        Ok(services
            .iter()
            .filter_map(|service| service.endpoints.as_ref())
            .flatten()
            .collect())
    }
}

fn not_found(message: String) -> Error {
    Error::new(ErrorKind::EndpointNotFound, message)
}

fn names<S: Into<String>>(names: impl Iterator<Item = S>) -> String {
    let names: BTreeSet<String> = names.map(Into::into).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = r#"[
        {"type": "identity", "name": "keystone", "endpoints": null},
        {"type": "bare-metal", "endpoints": [
            {"interface": "public", "region_id": "R1", "region": "R1", "url": "https://r1/baremetal"},
            {"interface": "internalURL", "region": "R1", "url": "http://r1-int"},
            {"interface": "public", "region_id": "R2", "url": "https://r2"},
            {"interface": null, "region_id": null, "region": null, "url": null}]},
        {"type": "baremetal-introspection", "endpoints": [
            {"interface": "admin", "region_id": "R1", "url": "http://inspector"}]},
        {"type": "placement", "endpoints": [
            {"interface": "public", "region_id": null, "region": null, "url": "http://placement/"},
            {"interface": "admin", "region_id": "", "url": "%(host)s/placement"}]},
        {"type": "computeV21", "endpoints": [
            {"interface": "public", "region_id": "R1", "url": "http://nova/v2.1"}]},
        {"type": null}, {}]"#;

    fn find(service_type: &str, interface: InterfaceType, region: Option<&str>) -> Result<String, String> {
        let catalog: Catalog = serde_json::from_str(CATALOG).unwrap();
        let mut filters = EndpointFilters::default().with_interfaces(interface);
        filters.region = region.map(str::to_owned);
        let found = catalog.find(service_type, &filters);
        found
            .map(|url| url.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_is_chosen_by_type_region_and_interface() {
        use InterfaceType::{Internal, Public};
        assert_eq!(
            find("baremetal", Public, Some("R1")).unwrap(),
            "https://r1/baremetal"
        );
        assert_eq!(find("baremetal", Public, Some("R2")).unwrap(), "https://r2/");
        assert_eq!(find("bare_metal", Internal, None).unwrap(), "http://r1-int/");
        assert_eq!(find("placement", Public, None).unwrap(), "http://placement/");
        assert_eq!(find("compute", Public, None).unwrap(), "http://nova/v2.1");
    }

    #[test]
    fn errors_say_what_there_is_instead() {
        use InterfaceType::{Admin, Internal, Public};
        for (found, words) in [
            (
                find("baremetal", Public, None),
                vec!["regions R1, R2", "set region_name"],
            ),
            (
                find("baremetal", Public, Some("R3")),
                vec!["public interface in region R3", "public interface in R2"],
            ),
            (
                find("baremetal", Internal, Some("R2")),
                vec!["internal interface in region R2", "in no region"],
            ),
            (
                find("baremetal", Admin, None),
                vec!["admin interface in any region"],
            ),
            (
                find("image", Public, None),
                vec![
                    "`image`",
                    "bare-metal, baremetal-introspection, computeV21, identity",
                ],
            ),
            (find("placement", Admin, None), vec!["unusable"]),
            (
                find("placement", Public, Some("R1")),
                vec!["public interface in no region"],
            ),
        ] {
            let message = found.unwrap_err();
            for word in words {
                assert!(message.contains(word), "{message} should contain {word}");
            }
        }
        let empty = Catalog::default()
            .find("baremetal", &EndpointFilters::default())
            .unwrap_err();
        assert!(empty.to_string().contains("baremetal_endpoint_override"));
    }
}
