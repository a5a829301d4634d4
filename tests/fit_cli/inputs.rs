//! Files as people have them, options and places: each works or gets one clear line.

use std::fs;
use std::path::Path;

use image::{DynamicImage, ImageFormat, RgbImage};
use sinexp::data::audio::{Encoding, write_wav};
use sinexp::data::image::{Alpha, Picture};

use super::{color_at, colors, fit, fitted, folder, picture, recording, refused, sticker, text};

/// A segment behind a JPEG's first marker that says: the stored left edge is the top.
fn turned(jpeg: &[u8]) -> Vec<u8> {
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0];
    let tiff = [b"MM\0\x2A\0\0\0\x08\0\x01".as_slice(), &entry, &[0; 4]].concat();
    let body = [b"Exif\0\0".as_slice(), &tiff].concat();
    [&jpeg[..2], &[0xFF, 0xE1], &(body.len() as u16 + 2).to_be_bytes(), &body, &jpeg[2..]].concat()
}

#[test]
fn pictures_that_people_have_work() {
    let folder = folder();
    let (at, out) = (|name: &str| folder.path().join(name), folder.path().join("out"));
    let size = |out: &Path| {
        let read = Picture::read(&out.join("reconstruction.png"), Alpha::Refuse).expect("a PNG");
        read.pixels.dim()
    };
    let works = |file: &Path, options: &[&str], about: &str, shape: (usize, usize, usize)| {
        let stdout = fitted(file, &out, options);
        assert!(stdout.contains(about), "`{stdout}` does not say `{about}`");
        assert_eq!(size(&out), shape, "{}", file.display());
    };
    let mut phone = std::io::Cursor::new(Vec::new());
    let photo = RgbImage::from_fn(1200, 900, |x, y| image::Rgb(color_at(x / 30, y / 30)));
    photo.write_to(&mut phone, ImageFormat::Jpeg).expect("encoded");
    fs::write(at("IMG_0001.JPG"), turned(phone.get_ref())).expect("written");
    let about =
        "JPEG, 8-bit RGB, 1200 x 900; turned by 90 degrees clockwise, as its EXIF orientation says: now 900 x 1200";
    works(&at("IMG_0001.JPG"), &[], about, (24, 18, 3));
    let deep = image::ImageBuffer::from_fn(40, 30, |x, y| image::Luma([(x * 1500 + y * 11) as u16]));
    DynamicImage::ImageLuma16(deep).save(at("scan.png")).expect("saved");
    works(&at("scan.png"), &[], "PNG, 16-bit gray, 40 x 30", (18, 24, 1));
    let print = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/cmyk.jpg");
    works(&print, &[], "CMYK turned into RGB without a colour profile", (6, 24, 3));
    works(&sticker(folder.path()), &["--background", "20,30,255"], "composited over", (18, 24, 3));
    // Gray, but stored in colour.
    let gray = picture(folder.path(), "gray.png", |x, y| [color_at(x, y)[0]; 3]);
    works(&gray, &[], "every pixel is gray: fitted as one channel", (18, 24, 1));
    works(&gray, &["--color", "lab", "--init", "sm20"], "PNG, 8-bit RGB", (18, 24, 3));
    for color in ["rgb", "lab"] {
        let parts = ["field `gray`", "every pixel is gray", "choose --color gray or", "sm20"];
        refused(&gray, &["--color", color], &parts);
    }
    // Nothing to match in these.
    let constant = picture(folder.path(), "constant.png", |_, _| [90, 120, 30]);
    refused(&constant, &[], &["field `constant`", "channel 0 is constant", "sm20"]);
    works(&constant, &["--init", "sm20"], "PNG, 8-bit RGB", (18, 24, 3));
    RgbImage::from_pixel(1, 1, image::Rgb([9, 200, 30])).save(at("dot.png")).expect("saved");
    refused(&at("dot.png"), &["--train-size", "0"], &["field `dot`", "1 sample along dimension 0", "sm20"]);
    works(&at("dot.png"), &["--init", "sm20", "--train-size", "0", "--eval-size", "0"], "1 x 1", (1, 1, 3));
}

#[test]
fn files_that_cannot_be_fitted_get_one_line() {
    let folder = folder();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let whole = fs::read(recording(folder.path())).expect("a WAV");
    refused(&at("cut.wav", &whole[..whole.len() - 1200]), &[], &["cut.wav", "cut off: 200 of 400 samples"]);
    refused(&at("song.wav", b"ID3\x04\0\0\0\0\0\0TIT2"), &[], &["song.wav", "looks like MP3", "ffmpeg"]);
    refused(&at("song", b"ID3\x04\0\0\0\0\0\0TIT2"), &[], &["looks like MP3"]);
    refused(&at("memo.m4a", b"\0\0\0\x1CftypM4A \0\0\0\0"), &[], &["memo.m4a", "MP4", "ffmpeg"]);
    refused(&at("IMG.HEIC", b"\0\0\0\x18ftypheic\0\0\0\0"), &[], &["IMG.HEIC", "HEIC", "convert it to JPEG or PNG"]);
    refused(&at("a.gif", b"GIF89a\x01\0\x01\0\0\0\0;"), &[], &["a.gif", "is a GIF file; convert it to PNG"]);
    let png = fs::read(colors(folder.path())).expect("a PNG");
    refused(&at("cut.png", &png[..png.len() / 2]), &[], &["cut.png", "cut off"]);
    for name in ["empty.png", "empty.wav", "empty"] {
        refused(&at(name, b""), &[], &[name, "is empty"]);
    }
    for name in ["notes.txt", "notes.png", "notes"] {
        refused(&at(name, b"some notes\n"), &[], &[name, "neither a picture (PNG, JPEG) nor a sound (WAV)"]);
    }
    refused(&at("notes.wav", b"some notes\n"), &[], &["notes.wav", "is not a WAV file"]);
    refused(folder.path(), &[], &["is a folder; give a picture (PNG, JPEG) or a sound (WAV)"]);
    refused(&folder.path().join("none.png"), &[], &["none.png", "no such file"]);
    let silence = folder.path().join("silence.wav");
    write_wav(&silence, &[0.0; 50], 8000, Encoding::Int16).expect("written");
    refused(&silence, &[], &["silence.wav", "all 50 samples are zero"]);
    refused(&sticker(folder.path()), &[], &["sticker.png", "transparent in 450 of 1200 pixels", "--background white"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    let (file, sound) = (colors(folder.path()), recording(folder.path()));
    let check = |options: &[&str], parts: &[&str]| refused(&file, options, parts);
    check(&["--width", "1"], &["--width", "1"]);
    check(&["--hidden", "0"], &["--hidden", "0"]);
    check(&["--steps", "0"], &["--steps", "0"]);
    check(&["--steps", "nan"], &["--steps", "nan"]);
    check(&["--seed", "-1"], &["--seed"]);
    check(&["--init", "siren"], &["--init", "siren", "uniform-mm"]);
    check(&["--color", "cmyk"], &["--color", "cmyk", "lab"]);
    check(&["--background", "red"], &["--background", "R,G,B from 0 to 255"]);
    check(&["--background", "0,0,256"], &["--background", "0 to 255"]);
    for value in ["nan", "inf", "-1", "0", "1e39", "1e-60"] {
        check(&["--learning-rate", value], &["--learning-rate", "give a positive number"]);
    }
    for option in ["--omega0", "--omega-h", "--sigma"] {
        for value in ["nan", "-1"] {
            check(&[option, value], &[option, "give a positive number"]);
        }
    }
    check(&["--checkpoint-every", "nan"], &["--checkpoint-every = NaN", "0 or more seconds"]);
    check(&["--checkpoint-every", "-1"], &["--checkpoint-every = -1"]);
    check(&["--device", "gpu9"], &["gpu9", "cpu"]);
    check(&["--train-size", "1"], &["1 sample along dimension 0", "sm20"]);
    check(&["--widht", "3"], &["--widht", "--width"]);
    refused(&sound, &["--color", "rgb"], &["--color = rgb", "recording.wav is a sound"]);
    refused(&sound, &["--background", "0,51,255"], &["--background = 0,51,255", "recording.wav is a sound"]);
}

#[test]
fn places_that_cannot_be_written_are_refused() {
    let folder = folder();
    let (file, blocked) = (colors(folder.path()), folder.path().join("file"));
    fs::write(&blocked, "in the way").expect("written");
    let mut places = vec![blocked.clone(), blocked.join("below")];
    if cfg!(target_os = "linux") {
        places.push("/proc/fit".into()); // nobody can make a folder there
    }
    for out in places {
        let output = fit(&file, &out, &[]);
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains("--out") && output.stdout.is_empty(), "{errors}");
    }
    assert_eq!(fs::read(&blocked).expect("untouched"), b"in the way");
}
