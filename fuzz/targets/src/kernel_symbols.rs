//! What must hold for any list of the kernel's symbols.

use std::io;

use longpole_symbols::kernel::{KernelSymbols, KernelSymbolsCopy};

type ReadAt<'a> = Box<dyn FnMut(u64, &mut [u8]) -> io::Result<usize> + 'a>;

fn copy_of(bytes: &[u8]) -> Option<KernelSymbolsCopy<ReadAt<'_>>> {
    let read_at = move |offset: u64, into: &mut [u8]| {
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    };
    KernelSymbolsCopy::open(Box::new(read_at), bytes.len() as u64)
}

/// Every address in the list gets a name of it, and the same name from a copy, except for symbols that a copy leaves out. A copy may hold any bytes.
pub(crate) fn kernel_symbols(bytes: &[u8]) {
    let symbols = KernelSymbols::parse(bytes);
    let kept = symbols.to_bytes();
    let (mut copy, mut found) = (copy_of(&kept).unwrap(), copy_of(bytes));
    let text = String::from_utf8_lossy(bytes).replace('\t', " ");
    for address in (0..0x4000).step_by(0x35).chain([0xffff_ffff_8126_f0a0, 0xffff_ffff_c04a_1010, u64::MAX]) {
        if let Some(name) = symbols.name(address) {
            assert!(!symbols.is_empty() && !name.is_empty() && text.contains(name), "{name}");
            let is_passing = text.contains(" [bpf]") || text.contains(" [__builtin__");
            assert!(copy.name(address).as_deref() == Some(name) || is_passing, "{name}");
        }
        let name = found.as_mut().and_then(|found| found.name(address)).unwrap_or_default();
        assert!(text.contains(&name.replace('\t', " ")), "{name}");
    }
}
