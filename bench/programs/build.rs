//! A build script that waits. FIX=1 does not.
fn main() {
    if std::env::var("FIX").is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
    println!("cargo::rerun-if-env-changed=FIX");
}
