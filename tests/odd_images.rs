//! Pictures that people have: every kind of PNG and JPEG, and files that only look like them.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};
use ndarray::{Array3, arr3};
use sinexp::data::image::{Alpha, Picture, to_rgb8, write_png};
use sinexp::error::Error;

const WHITE: Alpha = Alpha::Over([1.0; 3]);

/// A file in a folder that goes away with it.
struct Sample {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn sample(name: &str, bytes: &[u8]) -> Sample {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    Sample { _folder: folder, path }
}

impl Sample {
    fn read(&self, alpha: Alpha) -> Picture {
        Picture::read(&self.path, alpha).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The error's text, which is one line that begins with the path.
    fn refused(&self) -> String {
        refused(&self.path, Alpha::Refuse)
    }
}

fn refused(path: &Path, alpha: Alpha) -> String {
    let error = Picture::read(path, alpha).expect_err("refused");
    assert!(error.is_user_mistake());
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 250, "{text}");
    if matches!(error, Error::File { .. }) {
        assert!(text.starts_with(&path.display().to_string()), "{text}");
    }
    text
}

/// A PNG whose rows are `data` as stored (16-bit values big-endian).
fn png_file(w: u32, h: u32, color: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
    png_with(w, h, color, depth, data, |_| ())
}

fn png_with(
    w: u32,
    h: u32,
    color: png::ColorType,
    depth: png::BitDepth,
    data: &[u8],
    set: impl FnOnce(&mut png::Encoder<&mut Vec<u8>>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, w, h);
    encoder.set_color(color);
    encoder.set_depth(depth);
    set(&mut encoder);
    encoder.write_header().expect("header").write_image_data(data).expect("data");
    bytes
}

fn gradient_png() -> Vec<u8> {
    let data: Vec<u8> = (0..64 * 64).map(|i| (i * 7919 % 251) as u8).collect();
    png_file(64, 64, png::ColorType::Grayscale, png::BitDepth::Eight, &data)
}

/// Left half dark, right half light; `w` x `h`.
fn jpeg_file(w: u32, h: u32) -> Vec<u8> {
    let data: Vec<u8> = (0..w * h).map(|i| if i % w < w / 2 { 20 } else { 220 }).collect();
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 95).write_image(&data, w, h, ExtendedColorType::L8).expect("a JPEG");
    bytes
}

#[test]
fn sixteen_bit_gray_keeps_its_bits() {
    let data = [0u16, 1, 32768, 65535].map(u16::to_be_bytes).concat();
    let file = sample("a.png", &png_file(2, 2, png::ColorType::Grayscale, png::BitDepth::Sixteen, &data));
    let picture = file.read(Alpha::Refuse);
    assert_eq!(picture.pixels, arr3(&[[[0.0], [1.0 / 65535.0]], [[32768.0 / 65535.0], [1.0]]]));
    assert_eq!((picture.about.as_str(), picture.notes.len()), ("PNG, 16-bit gray, 2 x 2", 0));
}

#[test]
fn sixteen_bit_colour() {
    let data = [0u16, 4660, 65535].map(u16::to_be_bytes).concat();
    let file = sample("a.png", &png_file(1, 1, png::ColorType::Rgb, png::BitDepth::Sixteen, &data));
    assert_eq!(file.read(Alpha::Refuse).pixels, arr3(&[[[0.0, 4660.0 / 65535.0, 1.0]]]));
}

#[test]
fn transparent_pictures_are_refused_or_composited() {
    let data = [255, 0, 102, 51, 10, 20, 30, 255];
    let file = sample("a.png", &png_file(2, 1, png::ColorType::Rgba, png::BitDepth::Eight, &data));
    let text = file.refused();
    assert!(text.ends_with(
        "is transparent in 1 of 2 pixels; say what lies behind it: --background white or --background R,G,B"
    ));
    let picture = file.read(Alpha::Over([0.5, 1.0, 0.0]));
    // Alpha 51 is a fifth.
    let want = [0.2 + 0.8 * 0.5, 0.8, 0.2 * 0.4, 10.0 / 255.0, 20.0 / 255.0, 30.0 / 255.0];
    assert!(picture.pixels.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-15), "{}", picture.pixels);
    assert_eq!(picture.pixels.dim(), (1, 2, 3));
    assert_eq!(picture.notes, ["composited over 0.5,1,0: 1 of 2 pixels are transparent"]);
    assert!(refused(&file.path, Alpha::Over([0.0, 0.0, 255.0])).contains("255 is outside 0 to 1"));
    assert!(refused(&file.path, Alpha::Over([f64::NAN, 0.0, 0.0])).contains("NaN is outside 0 to 1"));
}

#[test]
fn opaque_alpha_is_dropped_with_a_note() {
    let file = sample("a.png", &png_file(1, 1, png::ColorType::Rgba, png::BitDepth::Eight, &[51, 102, 153, 255]));
    let picture = file.read(Alpha::Refuse);
    assert_eq!(picture.pixels, arr3(&[[[0.2, 0.4, 0.6]]]));
    assert_eq!(picture.notes, ["alpha dropped: every pixel is opaque"]);
    assert_eq!(picture.about, "PNG, 8-bit RGBA, 1 x 1");
}

#[test]
fn gray_with_alpha_stays_gray_over_gray() {
    let data = [0u16, 65535, 65535, 0].map(u16::to_be_bytes).concat();
    let file = sample("a.png", &png_file(2, 1, png::ColorType::GrayscaleAlpha, png::BitDepth::Sixteen, &data));
    assert!(file.refused().contains("--background white"));
    let picture = file.read(WHITE);
    assert_eq!(picture.pixels, arr3(&[[[0.0], [1.0]]]));
    assert_eq!(picture.notes, ["composited over white: 1 of 2 pixels are transparent"]);
    assert_eq!(file.read(Alpha::Over([1.0, 0.0, 0.0])).pixels, arr3(&[[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]));
}

#[test]
fn palettes_with_and_without_transparency() {
    let palette = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
    // Pixels 0, 1, 2, 3 at two bits each.
    let file = |transparent: Option<Vec<u8>>| {
        let bytes = png_with(4, 1, png::ColorType::Indexed, png::BitDepth::Two, &[0b00_01_10_11], |encoder| {
            encoder.set_palette(palette.to_vec());
            if let Some(alpha) = transparent {
                encoder.set_trns(alpha);
            }
        });
        sample("a.png", &bytes)
    };
    let plain = file(None).read(Alpha::Refuse);
    assert_eq!(plain.about, "PNG, 2-bit palette, 4 x 1");
    assert_eq!(to_rgb8(plain.pixels.view()), palette);
    let clear = file(Some(vec![0, 255]));
    assert!(clear.refused().contains("transparent in 1 of 4 pixels"));
    let over = clear.read(Alpha::Over([0.0; 3]));
    assert_eq!(to_rgb8(over.pixels.view()), [&[0, 0, 0], &palette[3..]].concat());
    assert_eq!(over.notes, ["composited over black: 1 of 4 pixels are transparent"]);
}

#[test]
fn a_colour_marked_as_clear() {
    // Gray 7 of 15 is the clear one.
    let bytes = png_with(2, 1, png::ColorType::Grayscale, png::BitDepth::Four, &[0x7F], |e| e.set_trns(vec![0, 7]));
    let file = sample("a.png", &bytes);
    assert!(file.refused().contains("transparent in 1 of 2 pixels"));
    assert_eq!(file.read(Alpha::Over([0.0; 3])).pixels, arr3(&[[[0.0], [1.0]]]));
}

#[test]
fn few_bits() {
    let one =
        sample("a.png", &png_file(9, 1, png::ColorType::Grayscale, png::BitDepth::One, &[0b1010_0000, 0b1000_0000]));
    let picture = one.read(Alpha::Refuse);
    assert_eq!(picture.about, "PNG, 1-bit gray, 9 x 1");
    assert_eq!(picture.pixels.into_iter().collect::<Vec<_>>(), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let four = sample("a.png", &png_file(2, 1, png::ColorType::Grayscale, png::BitDepth::Four, &[0x3F]));
    assert_eq!(four.read(Alpha::Refuse).pixels, arr3(&[[[0.2], [1.0]]]));
}

#[test]
fn one_pixel() {
    let file = sample("a.png", &png_file(1, 1, png::ColorType::Grayscale, png::BitDepth::Eight, &[51]));
    assert_eq!(file.read(Alpha::Refuse).pixels, arr3(&[[[0.2]]]));
}

/// The whole of an APP1 segment that says only: orientation.
fn with_orientation(jpeg: &[u8], value: u8) -> Vec<u8> {
    let tiff = [
        b"MM\0\x2A\0\0\0\x08".as_slice(),                // big-endian, first directory at 8
        &[0, 1],                                         // one entry
        &[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, value, 0, 0], // tag 0x112, one 16-bit number
        &[0, 0, 0, 0],                                   // no next directory
    ]
    .concat();
    let body = [b"Exif\0\0".as_slice(), &tiff].concat();
    let length = (body.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xFF, 0xE1], &length, &body, &jpeg[2..]].concat()
}

#[test]
fn jpegs_are_turned_upright() {
    let plain = sample("a.jpg", &jpeg_file(32, 16)).read(Alpha::Refuse);
    assert_eq!((plain.about.as_str(), plain.pixels.dim()), ("JPEG, 8-bit gray, 32 x 16", (16, 32, 1)));
    assert!(plain.notes.is_empty(), "{:?}", plain.notes);
    let dark = |p: &Picture, y: usize, x: usize| p.pixels[[y, x, 0]] < 0.2;
    assert!(dark(&plain, 8, 4) && !dark(&plain, 8, 28));
    // 6: the stored left edge is the top; 8: it is the bottom; 3: it is the right edge.
    let turned = |value| sample("a.jpg", &with_orientation(&jpeg_file(32, 16), value)).read(Alpha::Refuse);
    let six = turned(6);
    assert_eq!(six.pixels.dim(), (32, 16, 1));
    assert!(dark(&six, 4, 8) && !dark(&six, 28, 8));
    assert_eq!(six.notes, ["turned by 90 degrees clockwise, as its EXIF orientation says: now 16 x 32"]);
    let eight = turned(8);
    assert!(!dark(&eight, 4, 8) && dark(&eight, 28, 8));
    let three = turned(3);
    assert!(!dark(&three, 8, 4) && dark(&three, 8, 28));
    assert!(turned(1).notes.is_empty());
}

#[test]
fn a_cmyk_jpeg_is_read_as_rgb() {
    let picture = sample("a.jpg", include_bytes!("files/cmyk.jpg")).read(Alpha::Refuse);
    assert_eq!((picture.about.as_str(), picture.pixels.dim()), ("JPEG, 8-bit CMYK, 64 x 16", (16, 64, 3)));
    assert_eq!(picture.notes, ["CMYK turned into RGB without a colour profile"]);
    // White, cyan, orange and a mixture with black, each 16 pixels wide.
    for (patch, want) in [[255, 255, 255], [0, 255, 255], [255, 127, 0], [164, 134, 103]].into_iter().enumerate() {
        let got = to_rgb8(picture.pixels.slice(ndarray::s![8..9, 16 * patch + 8..16 * patch + 9, ..]));
        assert!(got.iter().zip(want).all(|(g, w): (&u8, u8)| g.abs_diff(w) <= 2), "{got:?} for {want:?}");
    }
}

#[test]
fn the_content_counts_and_not_the_name() {
    assert_eq!(sample("a.jpg", &gradient_png()).read(Alpha::Refuse).about, "PNG, 8-bit gray, 64 x 64");
    assert_eq!(sample("picture", &jpeg_file(16, 16)).read(Alpha::Refuse).about, "JPEG, 8-bit gray, 16 x 16");
}

#[test]
fn files_that_are_no_pictures() {
    assert!(sample("a.png", b"not a picture\n").refused().ends_with("a.png: is neither a PNG nor a JPEG picture"));
    assert!(sample("a.png", b"").refused().ends_with("is empty"));
    assert!(sample("a.png", b"GIF89a\x01\0\x01\0\0\0\0;").refused().ends_with("is a GIF file; convert it to PNG"));
    let folder = tempfile::tempdir().expect("temporary folder");
    assert!(refused(folder.path(), WHITE).ends_with("is a folder; give a PNG or JPEG file"));
    let missing = refused(&folder.path().join("none.png"), WHITE);
    assert!(missing.ends_with("none.png: cannot be read: no such file or directory"), "{missing}");
}

#[test]
fn files_that_are_cut_off() {
    let whole = gradient_png();
    for keep in [9, 20, 40, whole.len() / 2, whole.len() - 30] {
        let text = sample("a.png", &whole[..keep]).refused();
        assert!(text.contains("is damaged or cut off: "), "{keep}: {text}");
    }
    let whole = jpeg_file(64, 64);
    for keep in [3, 30, whole.len() / 2, whole.len() - 2] {
        let text = sample("a.jpg", &whole[..keep]).refused();
        assert!(text.contains("cut off"), "{keep}: {text}");
    }
    assert!(Picture::read(&sample("a.jpg", &[whole.as_slice(), b"more"].concat()).path, WHITE).is_ok());
}

#[test]
fn a_damaged_png_is_refused() {
    let mut bytes = gradient_png();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xFF;
    assert!(sample("a.png", &bytes).refused().contains("is damaged or cut off: "));
}

/// The same small file with another size in its header.
#[test]
fn sizes_beyond_the_limit_are_refused_before_memory_is_taken() {
    let mut bytes = gradient_png();
    for place in [16, 20] {
        bytes[place..place + 4].copy_from_slice(&100_000u32.to_be_bytes());
    }
    let checksum = crc32(&bytes[12..29]).to_be_bytes();
    bytes[29..33].copy_from_slice(&checksum);
    let text = sample("a.png", &bytes).refused();
    assert!(text.contains("is 100000 x 100000 pixels; at most 67108864 pixels are read"), "{text}");
    let mut bytes = jpeg_file(16, 16);
    let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    bytes[frame + 5..frame + 9].copy_from_slice(&[0xFF; 4]);
    let text = sample("a.jpg", &bytes).refused();
    assert!(text.contains("is 65535 x 65535 pixels; at most 67108864 pixels are read"), "{text}");
}

/// PNG's checksum of a chunk's name and data.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xEDB8_8320 } else { c >> 1 })
    })
}

#[test]
fn what_is_written_comes_back_rounded_and_clipped() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.png");
    let rgb = arr3(&[[[0.2, -1.0, 7.0]], [[0.501, f64::NAN, f64::INFINITY]]]);
    write_png(&path, rgb.view()).expect("written");
    let picture = Picture::read(&path, Alpha::Refuse).expect("read");
    assert_eq!(picture.pixels, arr3(&[[[0.2, 0.0, 1.0]], [[128.0 / 255.0, 0.0, 1.0]]]));
    assert_eq!(picture.about, "PNG, 8-bit RGB, 1 x 2");
    assert_eq!(to_rgb8(rgb.view()), [51, 0, 255, 128, 0, 255]);
    let gray = arr3(&[[[0.4], [0.6]]]);
    write_png(&path, gray.view()).expect("written");
    let picture = Picture::read(&path, Alpha::Refuse).expect("read");
    assert_eq!((picture.pixels.clone(), picture.about.as_str()), (gray.clone(), "PNG, 8-bit gray, 2 x 1"));
    assert_eq!(to_rgb8(gray.view()), [102, 102, 102, 153, 153, 153]);
    let two = write_png(&path, Array3::zeros((2, 2, 2)).view()).expect_err("two channels").to_string();
    assert!(two.contains("1 channel (gray) or 3 (RGB)"), "{two}");
    assert!(write_png(&path, Array3::zeros((0, 2, 1)).view()).is_err());
    assert!(write_png(folder.path().join("no/a.png"), gray.view()).is_err());
}

#[test]
fn gray_of_colours() {
    let file = sample(
        "a.png",
        &png_file(3, 1, png::ColorType::Rgb, png::BitDepth::Eight, &[255, 0, 0, 0, 255, 0, 51, 51, 51]),
    );
    let gray = file.read(Alpha::Refuse).gray();
    assert_eq!(gray.dim(), (1, 3, 1));
    assert!(gray.iter().zip([0.2125, 0.7154, 0.2]).all(|(g, w)| (g - w).abs() < 1e-15), "{gray}");
    let one = sample("a.png", &gradient_png()).read(Alpha::Refuse);
    assert_eq!(one.gray(), one.pixels);
}

#[test]
fn an_animation_gives_its_still_picture() {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(Cursor::new(&mut bytes), 1, 1);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_animated(2, 0).expect("animated");
    let mut writer = encoder.write_header().expect("header");
    writer.write_image_data(&[51]).expect("first");
    writer.write_image_data(&[102]).expect("second");
    writer.finish().expect("end");
    let picture = sample("a.png", &bytes).read(Alpha::Refuse);
    assert_eq!(picture.pixels, arr3(&[[[0.2]]]));
    assert_eq!(picture.notes, ["animated: the still picture was taken"]);
}
