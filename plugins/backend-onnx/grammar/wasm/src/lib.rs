//! llguidance for a host that speaks WebAssembly: a vocabulary, grammars over it, and matchers that say which token may come next.
//!
//! Handles are pointers that the host gives back; 0 is a failure whose text is the message (`message_ptr`, `message_len`).
//! The host has one thread, so nothing here is locked.

use std::cell::RefCell;
use std::slice::from_raw_parts;
use std::sync::Arc;

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::{Matcher, ParserFactory};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

/// What `matcher_*` functions answer, beside 0 for no and 1 for yes.
const FAILED: i32 = -1;

/// What a grammar may be given as.
const LARK: u32 = 1;

thread_local! {
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn say(message: impl Into<Vec<u8>>) {
    MESSAGE.with(|last| *last.borrow_mut() = message.into());
}

/// The handle of a value, or 0 and its error's text.
fn handle<T, E: std::fmt::Display>(made: Result<T, E>) -> *mut T {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            say(format!("{error:#}"));
            std::ptr::null_mut()
        }
    }
}

fn answer<E: std::fmt::Display>(asked: Result<bool, E>) -> i32 {
    match asked {
        Ok(yes) => i32::from(yes),
        Err(error) => {
            say(format!("{error:#}"));
            FAILED
        }
    }
}

/// The text of the last failure, or the bytes of the last `matcher_forced`. Valid until the next call.
#[no_mangle]
pub extern "C" fn message_ptr() -> *const u8 {
    MESSAGE.with(|last| last.borrow().as_ptr())
}

#[no_mangle]
pub extern "C" fn message_len() -> usize {
    MESSAGE.with(|last| last.borrow().len())
}

/// Memory that the host writes arguments into, and reads masks from; aligned for 32-bit words.
#[no_mangle]
pub extern "C" fn words_alloc(words: usize) -> *mut u32 {
    Box::into_raw(vec![0_u32; words].into_boxed_slice()).cast()
}

/// # Safety
/// `words_alloc(words)` gave `start`, and it was not freed.
#[no_mangle]
pub unsafe extern "C" fn words_free(start: *mut u32, words: usize) {
    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, words)));
}

/// Tokens lie in `bytes` one after another; token `i` ends before `ends[i]`. One without bytes is never allowed, but for those of `end_tokens`, where a text may end.
///
/// # Safety
/// `ends` holds `count` offsets into `bytes`, in ascending order; `end_tokens` holds `end_count` ids.
#[no_mangle]
pub unsafe extern "C" fn vocabulary_new(
    bytes: *const u8,
    ends: *const u32,
    count: usize,
    end_tokens: *const u32,
    end_count: usize,
) -> *mut ParserFactory {
    let ends = from_raw_parts(ends, count);
    let bytes = from_raw_parts(bytes, ends.last().map_or(0, |end| *end as usize));
    let end_tokens = from_raw_parts(end_tokens, end_count);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let words: Vec<Vec<u8>> = starts.zip(ends).map(|(start, end)| bytes[start as usize..*end as usize].to_vec()).collect();
    handle(new_vocabulary(&words, end_tokens))
}

fn new_vocabulary(words: &[Vec<u8>], end_tokens: &[u32]) -> Result<ParserFactory, String> {
    let first = *end_tokens.first().ok_or("a vocabulary needs an end token")?;
    if let Some(unknown) = end_tokens.iter().find(|token| **token as usize >= words.len()) {
        return Err(format!("the end token {unknown} is not among the {} tokens", words.len()));
    }
    let info = TokRxInfo::new(words.len() as u32, first);
    let trie = TokTrie::from(&info, words).with_eos_tokens(end_tokens);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new_simple(&env).map_err(|error| format!("{error:#}"))?;
    factory.quiet();
    Ok(factory)
}

/// Bounds what a grammar may cost: each compilation and each mask fails with a text rather than take more.
///
/// # Safety
/// `vocabulary` is a handle of `vocabulary_new`.
#[no_mangle]
pub unsafe extern "C" fn vocabulary_limit(
    vocabulary: *mut ParserFactory,
    grammar_size: usize,
    compile_fuel: u32,
    step_fuel: u32,
    step_items: usize,
    row_items: usize,
    lexer_states: usize,
) {
    *(*vocabulary).limits_mut() = ParserLimits {
        max_grammar_size: grammar_size,
        initial_lexer_fuel: compile_fuel.into(),
        step_lexer_fuel: step_fuel.into(),
        step_max_items: step_items,
        max_items_in_row: row_items,
        max_lexer_states: lexer_states,
        // error texts reach customers: no dump of the parser
        verbose_errors: false,
        ..ParserLimits::default()
    };
}

/// # Safety
/// `vocabulary` is a handle of `vocabulary_new`; `text` holds `length` bytes: a JSON Schema, or a grammar in Lark where `kind` is `LARK`.
#[no_mangle]
pub unsafe extern "C" fn matcher_new(vocabulary: *const ParserFactory, kind: u32, text: *const u8, length: usize) -> *mut Matcher {
    handle(new_matcher(&*vocabulary, kind, from_raw_parts(text, length)))
}

fn new_matcher(vocabulary: &ParserFactory, kind: u32, text: &[u8]) -> Result<Matcher, String> {
    let grammar = if kind == LARK {
        TopLevelGrammar::from_lark(String::from_utf8(text.to_vec()).map_err(|error| error.to_string())?)
    } else {
        TopLevelGrammar::from_json_schema(serde_json::from_slice(text).map_err(|error| error.to_string())?)
    };
    let matcher = Matcher::new(vocabulary.create_parser(grammar));
    match matcher.get_error() {
        Some(error) => Err(error),
        None => Ok(matcher),
    }
}

/// A matcher at the same place. Copies share what their lexer has learnt.
///
/// # Safety
/// `matcher` is a handle that was not freed; so for all that follow.
#[no_mangle]
pub unsafe extern "C" fn matcher_clone(matcher: *const Matcher) -> *mut Matcher {
    Box::into_raw(Box::new((*matcher).clone()))
}

/// Writes a bit for every token that may come next: all `count` words of `mask`.
///
/// # Safety
/// `mask` holds `count` words.
#[no_mangle]
pub unsafe extern "C" fn matcher_mask(matcher: *mut Matcher, mask: *mut u32, count: usize) -> i32 {
    let mask = std::slice::from_raw_parts_mut(mask, count);
    answer((*matcher).compute_mask_or_eos().map(|allowed| {
        let allowed = &allowed.as_slice()[..count.min(allowed.as_slice().len())];
        mask[..allowed.len()].copy_from_slice(allowed);
        mask[allowed.len()..].fill(0);
        true
    }))
}

/// Takes a token; 0 where the grammar does not allow it.
///
/// # Safety
/// See `matcher_clone`.
#[no_mangle]
pub unsafe extern "C" fn matcher_consume(matcher: *mut Matcher, token: u32) -> i32 {
    answer((*matcher).try_consume_tokens(&[token]).map(|taken| taken == 1))
}

/// Whether the text may end here.
///
/// # Safety
/// See `matcher_clone`.
#[no_mangle]
pub unsafe extern "C" fn matcher_accepting(matcher: *mut Matcher) -> i32 {
    answer((*matcher).is_accepting())
}

/// Forgets the last `count` tokens.
///
/// # Safety
/// See `matcher_clone`.
#[no_mangle]
pub unsafe extern "C" fn matcher_rollback(matcher: *mut Matcher, count: usize) -> i32 {
    answer((*matcher).rollback(count).map(|()| true))
}

/// The bytes that must come next, whatever the tokens: the message; answers how many.
///
/// # Safety
/// See `matcher_clone`.
#[no_mangle]
pub unsafe extern "C" fn matcher_forced(matcher: *mut Matcher) -> usize {
    say((*matcher).compute_ff_bytes());
    message_len()
}

/// # Safety
/// See `matcher_clone`.
#[no_mangle]
pub unsafe extern "C" fn matcher_free(matcher: *mut Matcher) {
    drop(Box::from_raw(matcher));
}
