//! Where heap profiles are not supported: unwinding and the list of mappings are Linux's here, and 32-bit Arm unwinds in a way of its own.

/// Why there is no profile.
pub(super) const WHY_NOT: &str = "heap profiles need Linux, and not on 32-bit Arm";

/// A sample; there are none.
pub(super) enum HeapSample {}

#[inline(always)]
pub(super) fn is_due(_bytes: usize) -> bool {
    false
}

#[inline(always)]
pub(super) fn may_be_sampled(_address: usize) -> bool {
    false
}

pub(super) fn allocated(_address: usize, _bytes: usize) {}

pub(super) fn forget(_address: usize) {}

pub(super) fn take(_address: usize) -> Option<HeapSample> {
    None
}

pub(super) fn put_back(_address: usize, sample: &HeapSample) {
    match *sample {}
}
