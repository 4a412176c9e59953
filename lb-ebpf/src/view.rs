//! Reads of a packet that cannot leave it.
//!
//! A program may touch packet bytes only behind a comparison with the packet's end, and the verifier must recognise
//! that comparison. So there is one bounds check per header ([`Packet::head`]) and afterwards only constant offsets,
//! which the compiler proves to lie inside the checked length. The host runs the same code on a slice.

#![expect(unsafe_code, reason = "the kernel hands over a packet as two pointers")]

use core::marker::PhantomData;

/// The bytes of a packet that the hook can read.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    start: *const u8,
    end: *const u8,
    len: u32,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// The packet in `bytes`, all of it readable.
    pub fn new(bytes: &'a [u8]) -> Self {
        let range = bytes.as_ptr_range();
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self {
            start: range.start,
            end: range.end,
            len,
            bytes: PhantomData,
        }
    }

    /// The packet between the pointers that the kernel gave to a program; `len` also counts bytes that lie in
    /// fragments, out of its reach.
    ///
    /// # Safety
    /// All bytes from `start` up to `end` can be read for as long as `'a`.
    #[inline(always)]
    pub const unsafe fn from_pointers(start: *const u8, end: *const u8, len: u32) -> Self {
        Self {
            start,
            end,
            len,
            bytes: PhantomData,
        }
    }

    /// Length of the whole packet, in bytes, readable or not.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no packet at all.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `N` bytes at offset `at`, if the packet reaches so far.
    #[inline(always)]
    pub fn head<const N: usize>(&self, at: usize) -> Option<Head<'a, N>> {
        let start = self.start.wrapping_add(at);
        // Two pointers are compared, not two lengths: this is the form that the verifier learns from.
        if start.wrapping_add(N) > self.end {
            None
        } else {
            Some(Head {
                start,
                bytes: PhantomData,
            })
        }
    }
}

/// `N` bytes of a packet, known to be there.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a, const N: usize> {
    start: *const u8,
    bytes: PhantomData<&'a [u8; N]>,
}

impl<const N: usize> Head<'_, N> {
    /// The byte at offset `AT`.
    #[inline(always)]
    pub fn byte<const AT: usize>(self) -> u8 {
        const { assert!(AT < N) };
        // SAFETY: `Packet::head` compared the packet's end with `start + N`, and `AT` lies below `N`.
        unsafe { *self.start.wrapping_add(AT) }
    }

    /// The two bytes at offset `AT` as a number.
    #[inline(always)]
    pub fn short<const AT: usize>(self) -> u16 {
        const { assert!(AT + 2 <= N) };
        // SAFETY: as in `byte`, for both bytes.
        u16::from_be(unsafe { load(self.start.wrapping_add(AT).cast()) })
    }

    /// The four bytes at offset `AT` as a number.
    #[inline(always)]
    pub fn long<const AT: usize>(self) -> u32 {
        u32::from_be(self.word::<AT>())
    }

    /// The four bytes at offset `AT` as they lie there, in network order.
    #[inline(always)]
    pub fn word<const AT: usize>(self) -> u32 {
        const { assert!(AT + 4 <= N) };
        // SAFETY: as in `byte`, for all four bytes.
        unsafe { load(self.start.wrapping_add(AT).cast()) }
    }

    /// The IPv6 address at offset `AT`.
    #[inline(always)]
    pub fn address<const AT: usize>(self) -> [u32; 4] {
        const { assert!(AT + 16 <= N) };
        let at = self.start.wrapping_add(AT);
        // SAFETY: as in `byte`, for all sixteen bytes.
        unsafe {
            [
                load(at.cast()),
                load(at.wrapping_add(4).cast()),
                load(at.wrapping_add(8).cast()),
                load(at.wrapping_add(12).cast()),
            ]
        }
    }
}

/// Reads a value wherever it lies.
///
/// # Safety
/// `size_of::<T>()` bytes at `from` can be read, and any bits make a `T`.
#[inline(always)]
unsafe fn load<T: Copy>(from: *const T) -> T {
    if cfg!(target_arch = "bpf") {
        // Said to be unaligned, a load becomes single bytes and shifts, two to four times the instructions. The kernel
        // lets programs load packet words from any address on the machines that we support.
        // SAFETY: the caller's promise; the kernel's just-in-time compilers emit plain loads.
        unsafe { *from }
    } else {
        // SAFETY: the caller's promise.
        unsafe { from.read_unaligned() }
    }
}
