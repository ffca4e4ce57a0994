//! The second wall: Landlock inside the new root. Should something of the host become visible after
//! all, it can be neither read nor written. Best effort: an old kernel has less of it or none, and
//! the first wall does not need it.

use std::path::Path;

use super::plan::{BYTECODE, Layout};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope,
};

/// The newest version that this policy was written for.
const NEWEST: ABI = ABI::V7;

/// Confines this process. Comes back with the version in use, 0 for none.
pub(super) fn restrict(layout: &Layout, scratch: &Path) -> i32 {
    let read_file = AccessFs::Execute | AccessFs::ReadFile;
    let read = read_file | AccessFs::ReadDir;
    let write: BitFlags<AccessFs> = AccessFs::from_all(NEWEST)
        & !(AccessFs::Execute
            | AccessFs::MakeChar
            | AccessFs::MakeBlock
            | AccessFs::MakeSock
            | AccessFs::MakeFifo
            | AccessFs::IoctlDev);
    let mut allowed: Vec<(&Path, BitFlags<AccessFs>)> = vec![(scratch, write)];
    allowed.extend(layout.folders.iter().map(|path| (path.as_path(), read)));
    allowed.extend(layout.files.iter().map(|path| (path.as_path(), read_file)));
    allowed.push((Path::new(BYTECODE), read));
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    allowed.extend(super::DEVICES.map(|path| (Path::new(path), device)));

    let restricted = || -> Result<_, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        for (path, access) in allowed {
            // What cannot be opened cannot be read either.
            if let Ok(opened) = PathFd::new(path) {
                rules = rules.add_rule(PathBeneath::new(opened, access))?;
            }
        }
        rules.restrict_self()
    };
    // Some containers' filters refuse these calls: that is no Landlock, as on an old kernel.
    let Ok(status) = restricted() else { return 0 };
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi as i32,
        _ => 0,
    }
}
