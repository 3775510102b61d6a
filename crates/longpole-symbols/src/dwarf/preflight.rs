//! Checks before gimli reads: two places where a few bytes can make its parser loop for ever, or read the same
//! bytes again and again.

use gimli::{DwForm, Reader};

/// The bytes of a section.
type Slice<'d> = gimli::EndianSlice<'d, gimli::RunTimeEndian>;

/// Bytes of the table of abbreviations at this offset.
pub(crate) fn abbreviations_length(section: &Slice<'_>, offset: gimli::DebugAbbrevOffset) -> usize {
    let mut rest = *section;
    if rest.skip(offset.0).is_err() {
        return 0;
    }
    let whole = rest.len();
    // A table that breaks off is read to where it does.
    let _ = skip_abbreviations(&mut rest);
    whole - rest.len()
}

fn skip_abbreviations(rest: &mut Slice<'_>) -> gimli::Result<()> {
    while rest.read_uleb128()? != 0 {
        rest.skip_leb128()?; // tag
        rest.read_u8()?; // children
        loop {
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                rest.skip_leb128()?;
            }
            if name == 0 && form == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Bytes of a line program's header, or `None` where it must not be read: its lists of directories and files say how
/// many entries follow, and what each consists of. If that is nothing, the list has no end but its number, and 2^64
/// entries fit into twenty bytes.
pub(crate) fn check(section: &Slice<'_>, offset: gimli::DebugLineOffset) -> Option<usize> {
    let mut rest = *section;
    rest.skip(offset.0).ok()?;
    let (length, format) = rest.read_initial_length().ok()?;
    let mut rest = rest.split(length).ok()?;
    let version = rest.read_u16().ok()?;
    let fixed_bytes = match version {
        // min_inst_length, default_is_stmt, line_base, line_range, opcode_base
        2 | 3 => 5,
        // The same with max_ops_per_inst.
        4 | 5 => 6,
        _ => return None,
    };
    if version == 5 {
        rest.skip(2).ok()?; // address_size, seg_select_size
    }
    let header_length = rest.read_length(format).ok()?;
    let mut header = rest.split(header_length).ok()?;
    if version == 5 {
        header.skip(fixed_bytes - 1).ok()?;
        let opcodes = usize::from(header.read_u8().ok()?);
        header.skip(opcodes.saturating_sub(1)).ok()?;
        skip_list(&mut header, format)?;
        skip_list(&mut header, format)?;
    }
    Some(header_length)
}

/// Skips a list of directories or of files, if each of its entries takes at least one byte.
fn skip_list(rest: &mut Slice<'_>, format: gimli::Format) -> Option<()> {
    let parts = rest.read_u8().ok()?;
    let mut forms = Vec::with_capacity(usize::from(parts));
    for _ in 0..parts {
        rest.skip_leb128().ok()?;
        forms.push(DwForm(u16::try_from(rest.read_uleb128().ok()?).ok()?));
    }
    let entries = rest.read_uleb128().ok()?;
    for _ in 0..entries {
        let before = rest.len();
        for form in &forms {
            skip_form(rest, *form, format)?;
        }
        if rest.len() == before {
            return None;
        }
    }
    Some(())
}

/// The forms that the standard allows here, and those of GNU and LLVM.
fn skip_form(rest: &mut Slice<'_>, form: DwForm, format: gimli::Format) -> Option<()> {
    let length = match form {
        gimli::DW_FORM_string => return rest.read_null_terminated_slice().ok().map(|_| ()),
        gimli::DW_FORM_udata | gimli::DW_FORM_strx => return rest.skip_leb128().ok(),
        gimli::DW_FORM_line_strp | gimli::DW_FORM_strp | gimli::DW_FORM_strp_sup | gimli::DW_FORM_GNU_strp_alt => {
            usize::from(format.word_size())
        }
        gimli::DW_FORM_data1 | gimli::DW_FORM_strx1 => 1,
        gimli::DW_FORM_data2 | gimli::DW_FORM_strx2 => 2,
        gimli::DW_FORM_strx3 => 3,
        gimli::DW_FORM_data4 | gimli::DW_FORM_strx4 => 4,
        gimli::DW_FORM_data8 => 8,
        gimli::DW_FORM_data16 => 16,
        gimli::DW_FORM_block => usize::try_from(rest.read_uleb128().ok()?).ok()?,
        _ => return None,
    };
    rest.skip(length).ok()
}
