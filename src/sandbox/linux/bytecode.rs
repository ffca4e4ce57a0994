//! Bytecode for an interpreter that was installed without: images of containers often leave it
//! out, and every program would compile what it imports once more. Made once, kept in the cache
//! folder of the user, and shown to programs read-only. A convenience: whatever fails, programs
//! run without.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::layout::Answer;
use super::plan::Layout;
use crate::sandbox::{cache, interpreter};

/// Imports what programs commonly import, which leaves its bytecode behind.
const IMPORTS: &str = "
import json
for name in '''
    argparse array ast asyncio base64 bisect calendar cmath collections concurrent.futures
    contextlib copy csv ctypes dataclasses datetime decimal difflib dis email enum fnmatch fractions
    functools getpass glob gzip hashlib heapq html.parser http.client inspect io itertools json
    linecache locale logging math mimetypes numbers operator os pathlib pickle platform pprint
    queue random re secrets select selectors shlex shutil signal socket sqlite3 ssl stat statistics
    string struct subprocess tempfile textwrap threading time timeit token tokenize traceback types
    typing unicodedata unittest urllib.parse urllib.request uuid warnings weakref xml.etree.ElementTree
    zipfile zoneinfo'''.split():
    try:
        __import__(name)
    except Exception:
        pass
print(json.dumps(True))
";

/// Where the bytecode lies, made now if need be; `None` if the interpreter has its own.
pub(in crate::sandbox) async fn provide(
    executable: &Path,
    layout: &Layout,
    answer: &Answer,
) -> Option<PathBuf> {
    if answer.bytecode.as_ref()?.exists() {
        return None;
    }
    match make(executable, layout).await {
        Ok(folder) => Some(folder),
        Err(error) => {
            tracing::debug!("the interpreter has no bytecode, and none can be kept: {error}");
            None
        }
    }
}

async fn make(executable: &Path, layout: &Layout) -> io::Result<PathBuf> {
    let cache = cache::folder()?;
    let folder = cache.join(format!("bytecode-{:016x}", layout.fingerprint()));
    if folder.is_dir() {
        return Ok(folder);
    }
    let making = tempfile::Builder::new().prefix("new-").tempdir_in(&cache)?;
    std::fs::set_permissions(
        making.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let prefix = format!("pycache_prefix={}", making.path().display());
    let mut command = Command::new(executable);
    command.env_clear().args(["-X", &prefix]);
    let _: bool = interpreter::ask_and_write(command, IMPORTS)
        .await
        .map_err(io::Error::other)?;
    let made = making.keep();
    match std::fs::rename(&made, &folder) {
        Ok(()) => Ok(folder),
        // Another server was faster.
        Err(_) if folder.is_dir() => std::fs::remove_dir_all(&made).map(|()| folder),
        Err(error) => Err(error),
    }
}

/// A folder that only this user may change.
pub(super) fn own_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)?;
    let found = path.symlink_metadata()?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !own || found.mode() & 0o022 != 0 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(())
}
