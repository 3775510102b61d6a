//! The user of this process, and the other users and groups of the machine, from `/proc` and `/etc`.

use std::fs;
use std::path::PathBuf;

/// The effective user and group of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl Owner {
    /// That of this process. `setuid` can change it, so each call asks the kernel.
    pub fn current() -> Owner {
        Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// Whether what belongs to this user may be relied on: itself, and root, who can do everything anyway.
    pub fn relies_on(self, uid: u32) -> bool {
        [self.uid, 0].contains(&uid)
    }
}

/// `alice (uid 1000)`, or `uid 1000` where no file of this machine names the user.
pub(crate) fn words_of(uid: u32) -> String {
    let passwd = passwd();
    let found = lines(&passwd).find(|fields| number(fields, 2) == Some(uid));
    found.and_then(|fields| fields.first().copied()).map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"))
}

/// The home that `/etc/passwd` names for this user.
pub fn home(uid: u32) -> Option<PathBuf> {
    let passwd = passwd();
    let home = lines(&passwd).find(|fields| number(fields, 2) == Some(uid))?.get(5).map(PathBuf::from)?;
    home.is_absolute().then_some(home)
}

/// Users besides its owner and root who may write what a file's group may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupWriters {
    /// Nobody.
    Nobody,
    /// The group has other members.
    Group,
    /// There is an access control list, whose limit the group's bits of the mode show, and it lets others write.
    AccessList,
}

/// The users who can write through the group's bits, where these allow it.
pub(crate) fn group_writers(gid: u32, access_list: Option<&[u8]>, user: Owner) -> GroupWriters {
    match access_list {
        None if is_private_group(gid, user) => GroupWriters::Nobody,
        None => GroupWriters::Group,
        Some(list) if is_for_nobody_else(list, user, |group| is_private_group(group.unwrap_or(gid), user)) => GroupWriters::Nobody,
        Some(_) => GroupWriters::AccessList,
    }
}

/// Whether an access control list lets only this user, root and private groups write. `is_private` decides about a group;
/// no number stands for the file's own.
///
/// ```text
/// 02000000  0100 0700 ffffffff  0200 0700 feff0000  0400 0000 ffffffff  1000 0700 ffffffff  2000 0000 ffffffff
/// version   user::rwx           user:65534:rwx      group::---          mask::rwx           other::---
/// ```
fn is_for_nobody_else(list: &[u8], user: Owner, is_private: impl Fn(Option<u32>) -> bool) -> bool {
    const WRITE: u16 = 2;
    let Some((version, entries)) = list.split_first_chunk() else { return false };
    let (entries, rest) = entries.as_chunks::<8>();
    u32::from_le_bytes(*version) == 2
        && rest.is_empty()
        && entries.iter().all(|[tag, tag_high, rights, rights_high, id @ ..]| {
            let id = u32::from_le_bytes(*id);
            u16::from_le_bytes([*rights, *rights_high]) & WRITE == 0
                || match u16::from_le_bytes([*tag, *tag_high]) {
                    // Its owner, the mask and the others: the mode says the same.
                    0x01 | 0x10 | 0x20 => true,
                    0x02 => user.relies_on(id),
                    0x04 => is_private(None),
                    0x08 => is_private(Some(id)),
                    _ => false,
                }
        })
}

/// Whether nobody but this user is in the group, as far as the files of this machine say: many systems give each user such a group and
/// let it write (`umask 002`). That of root counts, too.
fn is_private_group(gid: u32, user: Owner) -> bool {
    if gid == 0 {
        return is_of_root(&fs::read_to_string("/proc/self/gid_map").unwrap_or_default());
    }
    // It stands for every group that this user namespace does not know.
    if unmapped_gid() == Some(gid) {
        return false;
    }
    let Ok(groups) = fs::read_to_string("/etc/group") else { return false };
    is_private(gid, user, &passwd(), &groups)
}

/// Whether group 0 is root's, or that of the root of a container. Where a user namespace has but one group, as `unshare -r` makes it, 0 is what
/// it calls its user's own, whoever else is in that: `0 100 1`.
fn is_of_root(gid_map: &str) -> bool {
    let line = |line: &str| line.split_ascii_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>();
    let of_zero = gid_map.lines().filter_map(line).find(|line| line.first() == Some(&0));
    of_zero.is_none_or(|line| line.get(1) == Some(&0) || line.get(2) > Some(&1))
}

fn is_private(gid: u32, user: Owner, passwd: &str, groups: &str) -> bool {
    let Some(own) = lines(passwd).find(|fields| number(fields, 2) == Some(user.uid)) else { return false };
    let Some(group) = lines(groups).find(|fields| number(fields, 2) == Some(gid)) else { return false };
    let members = group.get(3).copied().unwrap_or_default();
    let is_primary = number(&own, 3) == Some(gid);
    let no_other_member = members.split(',').all(|member| member.is_empty() || Some(&member) == own.first());
    let no_other_user = lines(passwd).all(|fields| number(&fields, 3) != Some(gid) || number(&fields, 2) == Some(user.uid));
    // A directory service may know more members of a group that is shared; one that is called like its user is made for the user.
    is_primary && no_other_member && no_other_user && group.first() == own.first()
}

/// The number that stands for owners whom this user namespace does not know, where there are any: root outside of a container is one.
/// Where it is our own number, too, it says nothing: ours and theirs look the same.
pub fn unmapped_uid() -> Option<u32> {
    unmapped("/proc/self/uid_map", "/proc/sys/kernel/overflowuid")
}

/// The same of groups.
fn unmapped_gid() -> Option<u32> {
    unmapped("/proc/self/gid_map", "/proc/sys/kernel/overflowgid")
}

fn unmapped(map: &str, overflow: &str) -> Option<u32> {
    let map = fs::read_to_string(map).ok()?;
    if map.split_ascii_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    let overflow = fs::read_to_string(overflow).ok().and_then(|text| text.trim().parse().ok());
    overflow.or(Some(65_534))
}

fn passwd() -> String {
    fs::read("/etc/passwd").map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

fn number(fields: &[&str], at: usize) -> Option<u32> {
    fields.get(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_that_is_called_like_its_only_user() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\ncarol:x:1002:100::/:/bin/sh\n";
        let groups = "root:x:0:\nusers:x:100:\nalice:x:1000:\nbob:x:1001:carol\nteam:x:2000:alice,bob\n";
        let alice = Owner { uid: 1000, gid: 1000 };
        let bob = Owner { uid: 1001, gid: 100 };
        for (gid, user, private) in [(1000, alice, true), (2000, alice, false), (100, bob, false), (1001, bob, false), (7, alice, false)] {
            assert_eq!(is_private(gid, user, passwd, groups), private, "group {gid} of {user:?}");
        }
    }

    #[test]
    fn group_0_of_a_namespace_with_one_group_is_anybodys() {
        let machine = "         0          0 4294967295\n";
        let container = "         0     100000      65536\n";
        let rootless = "         1     100000      65536\n         0       1001          1\n";
        for (map, expected) in [(machine, true), (container, true), (rootless, false), ("0 100 1\n", false), ("", true), ("0\nx", false)] {
            assert_eq!(is_of_root(map), expected, "{map}");
        }
    }

    #[test]
    fn an_access_list_lets_nobody_else_write() {
        let alice = Owner { uid: 1000, gid: 1000 };
        let list = |entries: &[(u16, u16, u32)]| {
            let mut list = vec![2, 0, 0, 0];
            for (tag, rights, id) in [(0x01, 7, u32::MAX), (0x10, 7, u32::MAX), (0x20, 5, u32::MAX)].iter().chain(entries) {
                list.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
                list.extend(id.to_le_bytes());
            }
            list
        };
        let check = |entries: &[(u16, u16, u32)], expected: bool| {
            let found = is_for_nobody_else(&list(entries), alice, |group| group.is_none_or(|group| group == 7));
            assert_eq!(found, expected, "{entries:?}");
        };
        let own = (0x04, 7, u32::MAX);
        check(&[own], true);
        check(&[own, (0x02, 7, 1000), (0x02, 7, 0), (0x08, 7, 7)], true);
        check(&[own, (0x02, 5, 33), (0x08, 5, 100)], true);
        check(&[own, (0x02, 7, 33)], false);
        check(&[own, (0x02, 2, u32::MAX)], false);
        check(&[own, (0x08, 2, 100)], false);
        check(&[own, (0x40, 2, 1000)], false);
        assert!(!is_for_nobody_else(&list(&[own]), alice, |_| false));
        for broken in [&b""[..], &[2, 0, 0], &[3, 0, 0, 0], &[2, 0, 0, 0, 1]] {
            assert!(!is_for_nobody_else(broken, alice, |_| true), "{broken:?}");
        }
    }

    #[test]
    fn this_process_has_an_owner() {
        let owner = Owner::current();
        assert!(words_of(owner.uid).ends_with(&format!("uid {}", owner.uid)) || words_of(owner.uid).contains("(uid "));
    }
}
