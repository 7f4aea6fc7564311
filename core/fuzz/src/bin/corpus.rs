//! Writes the inputs as files for libFuzzer, or reads such files back into `corpus/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use poorhttp_fuzz::{TARGETS, corpus};

/// Longer inputs only reach limits; those are among the cases, and slow to fuzz.
const LONGEST: usize = 2 << 10;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder] = &arguments[..] else { panic!("usage: corpus unpack FOLDER | corpus pack FOLDER") };
    for (target, _) in TARGETS {
        let folder = Path::new(folder).join(target);
        match &what[..] {
            "unpack" => {
                fs::create_dir_all(&folder)?;
                let known = [("case", corpus::cases(target)), ("found", corpus::found(target))];
                for (kind, inputs) in known {
                    for (number, input) in inputs.iter().filter(|input| input.len() <= LONGEST).enumerate() {
                        fs::write(folder.join(format!("{kind}-{number:04}")), input)?;
                    }
                }
            }
            "pack" => {
                let mut lines = BTreeSet::new();
                for entry in fs::read_dir(&folder)? {
                    let entry = entry?;
                    // The protocol cases are in the same folder but are not copied back.
                    if !entry.file_name().as_encoded_bytes().starts_with(b"case-") {
                        lines.insert(corpus::escape(&fs::read(entry.path())?));
                    }
                }
                let text: String = lines.into_iter().map(|line| line + "\n").collect();
                fs::write(corpus::file(target), text)?;
            }
            other => panic!("corpus {other}?"),
        }
    }
    Ok(())
}
