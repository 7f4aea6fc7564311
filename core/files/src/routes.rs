//! Routes by host and longest path prefix: to published folders, or to anything else.

use poorhttp_http::split_authority;
use rustc_hash::FxHashMap;

use crate::static_root::StaticRoot;

/// A published folder as the target of a route.
#[derive(Debug)]
pub struct StaticRoute {
    /// The folder.
    pub root: StaticRoot,
    /// Whether the application gets requests for missing files and with methods other than GET and HEAD.
    pub falls_through: bool,
}

/// A path prefix and its target, such as a folder; `None`: there is none, and the application answers.
#[derive(Debug)]
struct Route<T> {
    /// Without a trailing slash; empty for everything.
    prefix: Vec<u8>,
    target: Option<T>,
}

impl<T> Route<T> {
    fn matches(&self, path: &[u8]) -> bool {
        path.starts_with(&self.prefix) && matches!(path.get(self.prefix.len()), None | Some(b'/'))
    }
}

/// The routes of one host, the longest first.
type Table<T> = Vec<Route<T>>;

/// All routes; by default none, so that the application gets everything.
#[derive(Debug)]
pub struct Routes<T = StaticRoute> {
    /// For hosts without an own table.
    others: Table<T>,
    hosts: FxHashMap<Vec<u8>, Table<T>>,
    /// For all hosts below a domain, which begins with a dot; the longest first.
    domains: Vec<(Vec<u8>, Table<T>)>,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Routes { others: Table::new(), hosts: FxHashMap::default(), domains: Vec::new() }
    }
}

impl<T> Routes<T> {
    /// Adds a route. `host` is a name in lower case without a port, `*.domain`, or empty for hosts without routes of their own;
    /// `prefix` has no trailing slash.
    pub fn add(&mut self, host: &str, prefix: &str, target: Option<T>) {
        let table = match host.strip_prefix('*') {
            None if host.is_empty() => &mut self.others,
            None => self.hosts.entry(host.into()).or_default(),
            Some(domain) => {
                let at = match self.domains.iter().position(|(known, _)| known == domain.as_bytes()) {
                    Some(at) => at,
                    None => {
                        let at = self.domains.partition_point(|(known, _)| known.len() > domain.len());
                        self.domains.insert(at, (domain.into(), Table::new()));
                        at
                    }
                };
                &mut self.domains[at].1
            }
        };
        let at = table.partition_point(|route| route.prefix.len() > prefix.len());
        table.insert(at, Route { prefix: prefix.into(), target });
    }

    /// The target for a decoded path on the requested authority, and the length of its prefix: where the name of a file
    /// begins in the path.
    #[inline]
    pub fn find<'a>(&self, requested_authority: impl FnOnce() -> &'a [u8], path: &[u8]) -> Option<(&T, usize)> {
        let table = match self.hosts.is_empty() && self.domains.is_empty() {
            true => &self.others,
            false => self.table_of(&host_of(requested_authority())),
        };
        let route = table.iter().find(|route| route.matches(path))?;
        Some((route.target.as_ref()?, route.prefix.len()))
    }

    fn table_of(&self, host: &[u8]) -> &Table<T> {
        let in_domain = || self.domains.iter().find(|(domain, _)| host.ends_with(domain)).map(|(_, table)| table);
        self.hosts.get(host).or_else(in_domain).unwrap_or(&self.others)
    }
}

/// The host of an authority, in lower case, without port and final dot (RFC 9110 section 7.2).
fn host_of(authority: &[u8]) -> Vec<u8> {
    let (host, _) = split_authority(authority);
    host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Option<StaticRoute> {
        let options = crate::Options { folder: "/".into(), ..Default::default() };
        Some(StaticRoute { root: StaticRoot::new(options, Default::default()).unwrap(), falls_through: false })
    }

    /// Offset of the file name, if the path leads to a folder.
    fn found(routes: &Routes, host: &str, path: &str) -> Option<usize> {
        routes.find(|| host.as_bytes(), path.as_bytes()).map(|(_, at)| at)
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_decides() {
        let mut routes = Routes::default();
        routes.add("", "/a", root());
        routes.add("", "/a/b", None);
        routes.add("", "/a/b/c", root());
        for (path, at) in [
            ("/a", Some(2)),
            ("/a/", Some(2)),
            ("/a/x", Some(2)),
            ("/ab", None),
            ("/", None),
            ("/a/b", None),
            ("/a/b/x", None),
            ("/a/bc", Some(2)),
            ("/a/b/c/d", Some(6)),
        ] {
            assert_eq!(found(&routes, "h", path), at, "{path}");
        }
    }

    #[test]
    fn a_host_has_its_own_routes_and_no_others() {
        let mut routes = Routes::default();
        routes.add("", "", root());
        routes.add("a.example", "/only", root());
        routes.add("*.example", "/wild", root());
        routes.add("*.b.example", "/wilder", root());
        for (host, path, at) in [
            ("x", "/any", Some(0)),
            ("a.example", "/only", Some(5)),
            ("A.EXAMPLE.:80", "/only", Some(5)),
            ("a.example", "/any", None),
            ("c.example", "/wild/x", Some(5)),
            ("c.b.example", "/wilder", Some(7)),
            ("c.b.example", "/wild", None),
            ("example", "/wild", Some(0)),
            ("[::1]:8080", "/any", Some(0)),
        ] {
            assert_eq!(found(&routes, host, path), at, "{host} {path}");
        }
    }
}
