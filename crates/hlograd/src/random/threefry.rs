//! The block function: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
//! 1, 2, 3", 2011, Section 3.3).

/// Rotation distances of the eight round positions.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// Parity constant of the key schedule, from Skein.
const PARITY: u32 = 0x1BD1_1BDA;

/// Two words of output for a key and a count.
pub(super) fn threefry2x32(key: [u32; 2], count: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
    let mut x = [count[0].wrapping_add(schedule[0]), count[1].wrapping_add(schedule[1])];
    for group in 0..5 {
        for r in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(r) ^ x[0];
        }
        x[0] = x[0].wrapping_add(schedule[(group + 1) % 3]);
        x[1] = x[1].wrapping_add(schedule[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::threefry2x32;

    /// The known-answer vectors published with the Random123 library.
    #[test]
    fn known_answers() {
        let ones = [u32::MAX; 2];
        assert_eq!(threefry2x32([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32(ones, ones), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(threefry2x32([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]), [0xc492_3a9c, 0x483d_f7a0]);
    }
}
