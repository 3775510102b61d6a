//! The whole suite once more, by a user without any privilege.

use std::fs;
use std::process::Command;

use longpole_testing::{lists_in, skip, take_over, turn};

use crate::program::me;
use crate::recorded::Folder;

const UNPRIVILEGED: &str = "LONGPOLE_RECORDER_UNPRIVILEGED";

pub(crate) fn is_root() -> bool {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::geteuid() == 0 }
}

/// This binary where every user can read it, to be run by the user of this number without any privilege.
pub(crate) fn unprivileged(folder: &Folder, user: u32) -> Command {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path("unprivileged");
    fs::copy(me(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.args(["--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]).arg(program);
    command.current_dir("/");
    command
}

/// All of the above once more, by a user who may do nothing.
#[test]
fn everything_works_without_privilege() {
    if !is_root() || std::env::var_os(UNPRIVILEGED).is_some() {
        if std::env::var_os(UNPRIVILEGED).is_none() {
            skip("everything_works_without_privilege", "only root can become another user");
        }
        return;
    }
    let folder = Folder::new();
    let mut command = unprivileged(&folder, 65_534);
    let _turn = turn();
    let output = command.args(["--test-threads=1"]).env(UNPRIVILEGED, "1").envs(lists_in(&folder.0)).output().unwrap();
    take_over(&folder.0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
