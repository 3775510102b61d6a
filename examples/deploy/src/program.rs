//! The deployed program: its resources and their dependencies.

use serde::{Deserialize, Serialize};

/// Type of a bundle of web assets.
pub const BUNDLE: &str = "compute:web:Bundle";

/// Type of a running service.
pub const SERVICE: &str = "compute:app:Service";

/// A declared resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Name, unique in the program.
    pub name: String,
    /// Type: `<provider>:<module>:<Kind>`.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// Names of its dependencies, declared earlier.
    pub depends_on: Vec<String>,
}

impl Resource {
    /// Name of the provider that creates it.
    pub fn provider(&self) -> &str {
        self.resource_type.split(':').next().unwrap_or_default()
    }

    /// Globally unique name.
    pub fn urn(&self) -> String {
        format!("urn:deploy:example::{}::{}", self.resource_type, self.name)
    }
}

/// The program. The README draws the graph.
pub fn resources() -> Vec<Resource> {
    let declare = |name: &str, resource_type: &str, depends_on: &[&str]| Resource {
        name: name.into(),
        resource_type: resource_type.into(),
        depends_on: depends_on.iter().map(|name| (*name).into()).collect(),
    };
    vec![
        declare("network", "cloud:net:Network", &[]),
        declare("subnet", "cloud:net:Subnet", &["network"]),
        declare("database", "cloud:db:Database", &["subnet"]),
        declare("api-key", "cloud:secret:Secret", &[]),
        declare("bucket", "cloud:storage:Bucket", &[]),
        declare("web-bundle", BUNDLE, &[]),
        declare("web-upload", "cloud:storage:Upload", &["web-bundle", "bucket"]),
        declare("api-service", SERVICE, &["web-upload", "database", "api-key"]),
        declare("certificate", "cloud:tls:Certificate", &["api-service"]),
        declare("load-balancer", "cloud:lb:LoadBalancer", &["api-service", "subnet"]),
        declare("alarm", "cloud:monitor:Alarm", &["api-service"]),
        declare("dns-record", "cloud:dns:Record", &["certificate", "load-balancer"]),
    ]
}
