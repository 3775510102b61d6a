//! Where V8's objects and frames keep what.
//!
//! V8 exports it for debuggers, as constants named by class and field: `class_JSFunction__shared__SharedFunctionInfo` is 24 in Node 20. What it
//! does not export has been the same from V8 10 (Node 18) to 13 (Node 24): the order within a `ScopeInfo`, and the first bits of its flags.

/// Bytes of a word of V8's heap. With compressed pointers they would be four; Node is built without.
pub(super) const WORD_BYTES: u64 = 8;

/// The layout of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapLayout {
    /// Distances from the frame pointer: of the context, or of a marker of the kind of frame; of the function; of its bytecode, if that is
    /// interpreted.
    frame_context: i64,
    frame_function: i64,
    frame_bytecode: i64,
    /// In a map, the type of its objects.
    pub(super) map_type: u64,
    /// In a function.
    pub(super) function_shared: u64,
    /// In what all closures of a function share.
    pub(super) shared_name: u64,
    pub(super) shared_script: u64,
    /// In a script.
    pub(super) script_name: u64,
    pub(super) script_source: u64,
    /// In a scope, the words that hold the number of its variables, and where they begin.
    pub(super) scope_variables: u64,
    pub(super) scope_first_variable: u64,
    /// In texts.
    pub(super) text_length: u64,
    pub(super) text_latin: u64,
    pub(super) text_wide: u64,
    pub(super) cons_first: u64,
    pub(super) cons_second: u64,
    pub(super) sliced_parent: u64,
    pub(super) sliced_offset: u64,
    pub(super) thin_actual: u64,
    pub(super) external_resource: u64,
    /// Types of objects. Texts have types below the first of all others.
    pub(super) type_function: u16,
    pub(super) type_shared: u16,
    pub(super) type_scope: u16,
    pub(super) type_script: u16,
    pub(super) type_not_text: u16,
    /// Bits of the type of a text.
    pub(super) text_kind_mask: u16,
    pub(super) text_is_latin: u16,
    pub(super) kind_cons: u16,
    pub(super) kind_external: u16,
    pub(super) kind_sliced: u16,
    pub(super) kind_thin: u16,
}

/// What a frame has of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFunction {
    /// Points to it.
    pub pointer: u64,
    /// Points to its bytecode, if that is interpreted, which the collector seldom moves; else any word.
    pub bytecode: u64,
}

/// Largest offset within an object that is believed.
const OFFSET_MAX: i32 = 1 << 10;

/// Bits of a Smi, the number that a word holds instead of a pointer, below its value.
const SMI_SHIFT: i32 = 31;

impl HeapLayout {
    /// The layout that these constants state; `constant` returns the first one whose name begins so. `None` if one is missing, or if pointers
    /// are compressed.
    pub(crate) fn of(constant: impl Fn(&str) -> Option<i32>) -> Option<HeapLayout> {
        let is_wide = constant("SmiShiftSize") == Some(SMI_SHIFT) && constant("HeapObjectTag") == Some(1);
        let offset = |name: &str| constant(name).filter(|offset| (0..OFFSET_MAX).contains(offset)).map(i32::cast_unsigned).map(u64::from);
        let of_frame = |name: &str| constant(name).filter(|offset| (-OFFSET_MAX..0).contains(offset)).map(i64::from);
        let bits = |name: &str| constant(name).and_then(|bits| u16::try_from(bits).ok());
        let layout = HeapLayout {
            frame_context: of_frame("off_fp_context_or_frame_type").or_else(|| of_frame("off_fp_context"))?,
            frame_function: of_frame("off_fp_function")?,
            frame_bytecode: of_frame("off_fp_bytecode_array")?,
            map_type: offset("class_Map__instance_type__")?,
            function_shared: offset("class_JSFunction__shared__")?,
            shared_name: offset("class_SharedFunctionInfo__name_or_scope_info__")?,
            shared_script: offset("class_SharedFunctionInfo__script__")
                .or_else(|| offset("class_SharedFunctionInfo__script_or_debug_info__"))?,
            script_name: offset("class_Script__name__")?,
            script_source: offset("class_Script__source__")?,
            scope_variables: offset("scopeinfo_idx_ncontextlocals")?,
            scope_first_variable: offset("scopeinfo_idx_first_vars")?,
            text_length: offset("class_String__length__")?,
            text_latin: offset("class_SeqOneByteString__chars__")?,
            text_wide: offset("class_SeqTwoByteString__chars__")?,
            cons_first: offset("class_ConsString__first__")?,
            cons_second: offset("class_ConsString__second__")?,
            sliced_parent: offset("class_SlicedString__parent__")?,
            sliced_offset: offset("class_SlicedString__offset__")?,
            thin_actual: offset("class_ThinString__actual__")?,
            external_resource: offset("class_ExternalString__resource__")?,
            type_function: bits("type_JSFunction__")?,
            type_shared: bits("type_SharedFunctionInfo__")?,
            type_scope: bits("type_ScopeInfo__")?,
            type_script: bits("type_Script__")?,
            type_not_text: bits("FirstNonstringType")?,
            text_kind_mask: bits("StringRepresentationMask")?,
            text_is_latin: bits("OneByteStringTag")?,
            kind_cons: bits("ConsStringTag")?,
            kind_external: bits("ExternalStringTag")?,
            kind_sliced: bits("SlicedStringTag")?,
            kind_thin: bits("ThinStringTag")?,
        };
        is_wide.then_some(layout)
    }

    /// The function that a frame runs, if it is laid out as a frame of JavaScript. `word` yields a word of the stack.
    ///
    /// ```text
    ///  fp-32                 fp-16      fp-8       fp         fp+8
    /// | bytecode or a local | function | context  | saved fp | return address |      a marker instead of the context: V8's own code
    /// ```
    pub fn function_of_frame(&self, fp: u64, word: impl Fn(u64) -> Option<u64>) -> Option<FrameFunction> {
        let at = |offset| word(fp.checked_add_signed(offset)?);
        let (pointer, context) = (at(self.frame_function)?, at(self.frame_context)?);
        let is_function = is_pointer(pointer) && is_pointer(context);
        is_function.then(|| FrameFunction { pointer, bytecode: at(self.frame_bytecode).unwrap_or(0) })
    }
}

/// Whether a word points to an object of the heap: its last bits are 01.
pub(super) fn is_pointer(word: u64) -> bool {
    word & 3 == 1 && word > u64::from(u16::MAX)
}

/// The number that a word holds, if it holds one.
pub(super) fn small_integer(word: u64) -> Option<i32> {
    (word & 0xffff_ffff == 0).then_some((word >> 32) as i32)
}
