//! Names of operations in few columns.

/// The method of a gRPC call, `package.Service/Method`, without its service. Any other name, a route of a web service among them, as it is.
pub(super) fn method_of_call(name: &str) -> &str {
    let call = name.trim_start_matches('/').split_once('/');
    call.filter(|(service, method)| service.contains('.') && !service.contains(' ') && !method.contains('/'))
        .map_or(name, |(_, method)| method)
}

/// The name in the title of a cloud resource, `aws:s3:Bucket web`, without its type.
pub(super) fn resource_of_title(title: &str) -> &str {
    title.split_once(' ').map_or(title, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_lose_their_service_and_routes_nothing() {
        assert_eq!(method_of_call("/pulumirpc.ResourceProvider/Create"), "Create");
        assert_eq!(method_of_call("grpc.health.v1.Health/Check"), "Check");
        for whole in ["GET /api/v1.2/users", "/v1.2/users/7", "plain", "/users"] {
            assert_eq!(method_of_call(whole), whole);
        }
        assert_eq!(resource_of_title("aws:s3:Bucket web"), "web");
        assert_eq!(resource_of_title("web"), "web");
    }
}
