//! Builds the stack of a sample: unwinds registers and stack bytes, and adds the functions of interpreters, compiled code and the kernel.

use std::sync::Arc;

use longpole_model::{AbsAddr, CodeAddress, LocationId, StackId};
use longpole_symbols::made_code::MadeId;
use longpole_symbols::unwind::{AddressSpace, Frame, Place, StackEnd, StackWalker};

use crate::frames::javascript::{JavaScripts, Named};
use crate::frames::jit::Jit;
use crate::frames::jvm::Jvms;
use crate::frames::kernel::Kernel;
use crate::frames::python::{NativeStack, Pythons, When};
use crate::frames::stacks::{FrameLocation, ProgramId, Stacks, Truncation};
use crate::perf::record::SampleRecord;
use crate::sink::ObservationWriter;
use crate::slow_walks::SlowWalks;
use crate::waits::blocked_thread::BlockedThread;

/// Builds stacks and assigns their ids.
pub(super) struct StackBuilder {
    pub(super) walker: StackWalker,
    pub(super) slow_walks: SlowWalks,
    pub(super) pythons: Pythons,
    pub(super) javascripts: JavaScripts,
    pub(super) jit: Jit,
    pub(super) jvms: Jvms,
    pub(super) kernel: Kernel,
    pub(super) stacks: Stacks,
    // Kept for their memory.
    frames: Vec<Frame>,
    frame_locations: Vec<FrameLocation>,
    locations: Vec<LocationId>,
}

/// The stack of a sample, and where it is cut off.
pub(super) struct SampleStack {
    /// `None` if the sink could not keep a definition.
    pub(super) id: Option<StackId>,
    /// Why the stack of user space is cut off, if it is.
    pub(super) user: Option<Truncation>,
    /// Why the kernel's stack is cut off, if it is.
    pub(super) kernel: Option<Truncation>,
}

impl StackBuilder {
    pub(super) fn new(jit: Jit, kernel: Kernel) -> StackBuilder {
        StackBuilder {
            walker: StackWalker::new(),
            slow_walks: SlowWalks::default(),
            pythons: Pythons::new(),
            javascripts: JavaScripts::new(),
            jit,
            jvms: Jvms::default(),
            kernel,
            stacks: Stacks::default(),
            frames: Vec::new(),
            frame_locations: Vec::new(),
            locations: Vec::new(),
        }
    }

    /// Builds the stack of a sample. `space` holds the mappings of its process.
    pub(super) fn of_sample(
        &mut self,
        (pid, tid, time): (u32, u32, u64),
        space: &Arc<AddressSpace>,
        sample: &SampleRecord<'_>,
        out: &mut ObservationWriter,
    ) -> SampleStack {
        let in_kernel = sample.kernel.addresses().next().is_some();
        let mut cut = match sample.registers {
            Some(registers) => {
                let (walker, frames, made) = (&mut self.walker, &mut self.frames, self.jvms.of(pid, time));
                let stack = (sample.stack, sample.stack_room as u32);
                let end = self.slow_walks.walk(pid, time, || walker.walk_through(space, &registers, stack, made, frames));
                let end = end.unwrap_or_else(|| StackWalker::leaf(space, &registers, &mut self.frames));
                (end != StackEnd::Root).then_some(Truncation::Walk(end))
            }
            None => {
                self.frames.clear();
                if !in_kernel {
                    let address = CodeAddress::Instruction(AbsAddr(sample.ip));
                    self.frames.push(Frame { address, place: space.locate(AbsAddr(sample.ip)), sp: 0, fp: 0 });
                }
                Some(if sample.is_32_bit { Truncation::Code32 } else { Truncation::NoRegisters })
            }
        };
        // During an exec and at the end of a process there is no user space, or it does not match the registers: then only the kernel's
        // functions count.
        let is_nowhere = self.frames.first().is_none_or(|frame| matches!(frame.place, Place::Unknown)) || sample.stack.is_empty();
        if in_kernel && is_nowhere && !sample.is_32_bit {
            self.frames.clear();
            cut = None;
        }
        let native = NativeStack {
            frames: &self.frames,
            stack: sample.stack,
            sp: sample.registers.map_or(0, |registers| registers.sp),
            kept: &sample.kept,
            is_whole: cut.is_none(),
        };
        let program = self.jit.program(pid);
        let has_map = self.javascripts.has(pid) && has_anonymous(&self.frames) && self.jit.has_map(pid);
        let made = made_locations(&self.frames, pid, &mut self.jvms, &mut self.stacks);
        let named = self.javascripts.name((pid, time), &native, has_map, &mut self.stacks);
        let of_native = |frame: &Frame| native_location(frame, program, named, &made);
        if !self.pythons.merge((pid, tid, When::At(time)), &native, &mut self.stacks, of_native, cut, &mut self.frame_locations) {
            self.frame_locations.clear();
            self.frame_locations.extend(self.frames.iter().map(of_native).chain(cut.map(FrameLocation::Truncation)));
        }
        // What V8 runs without a name beside its functions are stubs and regular expressions.
        let lacks_names = has_map || !named.has_layout;
        let is_nameless = self.frame_locations.iter().any(|location| matches!(location, FrameLocation::Unmapped { .. }));
        if lacks_names && is_nameless && !self.jvms.miss(pid) {
            self.jit.count(pid);
        }
        let kernel = self.kernel.put(sample.kernel, &mut self.stacks, &mut self.frame_locations);
        SampleStack { id: self.number(out), user: cut, kernel }
    }

    /// Reads the functions of a thread that sleeps: when its wait is over, their memory may be gone.
    pub(super) fn name_while_asleep(&mut self, blocked: &BlockedThread) {
        let BlockedThread { pid, at, place, stack, walked, .. } = blocked;
        if let Some((frames, _)) = walked
            && self.javascripts.has(*pid)
        {
            let native = NativeStack { frames, stack, sp: place.1, kept: &[], is_whole: false };
            let has_map = has_anonymous(frames) && self.jit.has_map(*pid);
            self.javascripts.name((*pid, *at), &native, has_map, &mut self.stacks);
        }
    }

    /// Builds the stack of a thread that was blocked until `end`; `None` if its stack could not be read.
    pub(super) fn of_blocked_thread(
        &mut self,
        tid: u32,
        blocked: &BlockedThread,
        end: u64,
        out: &mut ObservationWriter,
    ) -> Option<StackId> {
        let BlockedThread { pid, since, at, place, stack, walked, .. } = blocked;
        let (frames, walk_end) = walked.as_ref()?;
        let asleep = When::Asleep { since: *since, end, at: *at, ends: blocked.ends(end) };
        let cut = (*walk_end != StackEnd::Root).then_some(Truncation::Walk(*walk_end));
        let native = NativeStack { frames, stack, sp: place.1, kept: &[], is_whole: cut.is_none() };
        let program = self.jit.program(*pid);
        let has_map = self.javascripts.has(*pid) && has_anonymous(frames) && self.jit.has_map(*pid);
        let made = made_locations(frames, *pid, &mut self.jvms, &mut self.stacks);
        let named = self.javascripts.name((*pid, *at), &native, has_map, &mut self.stacks);
        let of_native = |frame: &Frame| native_location(frame, program, named, &made);
        if !self.pythons.merge((*pid, tid, asleep), &native, &mut self.stacks, of_native, cut, &mut self.frame_locations) {
            self.frame_locations.clear();
            self.frame_locations.extend(frames.iter().map(of_native).chain(cut.map(FrameLocation::Truncation)));
        }
        self.number(out)
    }

    /// The id of the stack in `frame_locations`; `None` if the sink could not keep a definition.
    fn number(&mut self, out: &mut ObservationWriter) -> Option<StackId> {
        self.locations.clear();
        for location in &self.frame_locations {
            self.locations.push(self.stacks.location(*location, out)?);
        }
        self.stacks.stack(&self.locations, out)
    }
}

fn has_anonymous(frames: &[Frame]) -> bool {
    frames.iter().any(|frame| frame.place == Place::Anonymous)
}

fn native_location(frame: &Frame, program: ProgramId, named: &Named, made: &[(MadeId, FrameLocation)]) -> FrameLocation {
    if let Some(location) = named.of(frame) {
        return location;
    }
    let unmapped = FrameLocation::Unmapped { program, address: frame.address.for_lookup() };
    match frame.place {
        Place::Code { mapping, address } => FrameLocation::Code { mapping, address },
        Place::Made(id) => made.iter().find(|(made, _)| *made == id).map_or(unmapped, |(_, location)| *location),
        Place::Anonymous | Place::Unknown => unmapped,
    }
}

/// The locations of the functions of made code among these frames.
fn made_locations(frames: &[Frame], pid: u32, jvms: &mut Jvms, stacks: &mut Stacks) -> Vec<(MadeId, FrameLocation)> {
    let mut locations: Vec<(MadeId, FrameLocation)> = Vec::new();
    for frame in frames {
        let Place::Made(id) = frame.place else { continue };
        if !locations.iter().any(|(known, _)| *known == id) {
            locations.extend(jvms.location(pid, id, stacks).map(|location| (id, location)));
        }
    }
    locations
}
