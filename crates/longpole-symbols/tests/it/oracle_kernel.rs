//! What must hold for any list of the kernel's symbols. The fuzz target and the tests call this same function; this file is compiled
//! into both.

use longpole_symbols::kernel::KernelSymbols;

/// Every address is answered, and by a name of the list; by the same of a copy, except for what is not kept. Any bytes may be found in
/// place of a copy.
pub(crate) fn kernel_symbols(bytes: &[u8]) {
    let symbols = KernelSymbols::parse(bytes);
    let copy = KernelSymbols::from_bytes(&symbols.to_bytes()).unwrap();
    let found = KernelSymbols::from_bytes(bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes).replace('\t', " ");
    for address in (0..0x4000).step_by(0x35).chain([0xffff_ffff_8126_f0a0, 0xffff_ffff_c04a_1010, u64::MAX]) {
        if let Some(name) = symbols.name(address) {
            assert!(!symbols.is_empty() && !name.is_empty() && text.contains(name), "{name}");
            assert!(copy.name(address) == Some(name) || text.contains(" [bpf]") || text.contains(" [__builtin__"), "{name}");
        }
        assert!(found.name(address).is_none_or(|name| text.contains(name)));
    }
}
