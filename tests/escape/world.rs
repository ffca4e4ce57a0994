//! What is planted on the host for one run: files, listeners, a victim, and the random words that
//! stand for them in a script.
//!
//! Nothing here is protected by its permissions: everything is open to every user, so that what an
//! attack does not get, a sandbox has kept from it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::corpus::Thing;
use crate::processes;

/// The first argument by which the runner's own binary becomes a victim.
pub const VICTIM: &str = "__victim";

/// How long a victim that stands may keep its answer back: longer than any load of the machine does.
const SILENCE: Duration = Duration::from_secs(60);

/// A random word that stands nowhere by accident.
pub fn word() -> String {
    std::iter::repeat_with(fastrand::alphanumeric)
        .take(20)
        .collect()
}

/// What does not change from run to run of one session.
#[derive(Debug, Clone)]
pub struct Site {
    /// Where planted folders are made.
    pub folder: PathBuf,
    /// Where the server makes scratch directories.
    pub scratch: PathBuf,
    pub server: u32,
    /// Whom the server runs as.
    pub uid: u32,
    /// The standard library of the interpreter that programs run on.
    pub stdlib: PathBuf,
    /// The runner's own binary, where that user can reach it.
    pub runner: PathBuf,
}

pub struct World {
    pub marker: String,
    /// Given only to another image that the program becomes or starts.
    pub image: String,
    /// Stands in the script written backwards, so that a traceback does not show it.
    pub forbidden: String,
    pub secret: String,
    pub name_secret: String,
    pub victim_secret: String,
    tree: PathBuf,
    probe: PathBuf,
    sockets: Sockets,
    victim: Option<Victim>,
    victim_before: String,
    tree_before: Vec<String>,
    stdlib_before: Vec<String>,
    devices_before: Vec<String>,
    ipc_key: i32,
    site: Site,
}

/// A process of the same user as the server, and the line on which it answers.
struct Victim {
    process: Child,
    line: UnixStream,
}

#[derive(Default)]
struct Sockets {
    tcp: Option<TcpListener>,
    tcp6: Option<TcpListener>,
    udp: Option<UdpSocket>,
    stream: Option<UnixListener>,
    datagram: Option<UnixDatagram>,
    abstract_stream: Option<UnixListener>,
    folder: PathBuf,
}

impl World {
    /// Plants what this script speaks of.
    pub fn plant(site: &Site, code: &str) -> Self {
        let marker = word();
        let tree = site.folder.join(word());
        let (secret, name_secret, victim_secret) = (word(), word(), word());
        fs::create_dir_all(tree.join("folder/inner")).unwrap();
        fs::create_dir(tree.join("package")).unwrap();
        fs::write(tree.join("secret.txt"), format!("{secret}\n")).unwrap();
        fs::write(tree.join(format!("folder/{name_secret}")), "named").unwrap();
        fs::write(
            tree.join("package/planted.py"),
            format!("SECRET = {secret:?}\n"),
        )
        .unwrap();
        symlink("secret.txt", tree.join("link")).unwrap();
        for folder in ["", "folder", "folder/inner", "package"] {
            fs::set_permissions(tree.join(folder), fs::Permissions::from_mode(0o777)).unwrap();
        }
        fs::set_permissions(tree.join("secret.txt"), fs::Permissions::from_mode(0o666)).unwrap();
        let mut world = Self {
            marker,
            image: word(),
            forbidden: word(),
            secret,
            name_secret,
            victim_secret,
            probe: site.folder.join(word()),
            sockets: Sockets::open(code, site.folder.join(word())),
            victim: None,
            victim_before: String::new(),
            tree_before: Vec::new(),
            stdlib_before: Vec::new(),
            devices_before: devices(),
            ipc_key: fastrand::i32(0x1000_0000..0x7000_0000),
            tree,
            site: site.clone(),
        };
        if code.contains("@VICTIM@") {
            world.start_victim();
        }
        world.tree_before = fingerprint(&world.tree);
        if code.contains("os.__file__") {
            world.stdlib_before = world.stdlib();
        }
        world
    }

    fn start_victim(&mut self) {
        let (line, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new(&self.site.runner);
        command
            .arg(VICTIM)
            .env_clear()
            .env("VICTIM_SECRET", &self.victim_secret)
            .stdin(fs::File::open(self.tree.join("secret.txt")).unwrap())
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .process_group(0);
        if rustix::process::getuid().is_root() && self.site.uid != 0 {
            command.uid(self.site.uid).gid(self.site.uid);
        }
        let process = command.spawn().expect("a victim");
        drop(command);
        let victim = Victim { process, line };
        assert!(
            victim.answers(Duration::from_secs(20)),
            "a victim that stands"
        );
        self.victim_before = processes::fingerprint(victim.process.id());
        self.victim = Some(victim);
    }

    /// Makes the thing that a probe is about be there, or not.
    pub fn arrange(&mut self, thing: Thing, there: bool) {
        match (thing, there) {
            (Thing::File, true) => fs::write(&self.probe, "").unwrap(),
            (Thing::Folder, true) => fs::create_dir(&self.probe).unwrap(),
            (Thing::Symlink, true) => symlink("secret.txt", &self.probe).unwrap(),
            (Thing::Socket, true) => {
                // The file stays when its listener goes: it refuses, where a missing one is missing.
                UnixListener::bind(&self.probe).unwrap();
            }
            // An unconfined program can have left there what it likes.
            (Thing::File | Thing::Folder | Thing::Symlink | Thing::Socket, false) => {
                let _ = fs::remove_file(&self.probe).or_else(|_| fs::remove_dir_all(&self.probe));
            }
            (Thing::Process, true) | (Thing::EarlierRun, _) => {}
            (Thing::Process, false) => {
                self.victim
                    .as_mut()
                    .expect("such a script names @VICTIM@")
                    .end();
            }
        }
        if there && matches!(thing, Thing::File | Thing::Folder) {
            fs::set_permissions(&self.probe, fs::Permissions::from_mode(0o777)).unwrap();
        }
    }

    /// The script with everything filled in that it attacks.
    pub fn fill(&self, code: &str) -> String {
        let port = |port: Option<u16>| port.unwrap_or(1).to_string();
        let tcp = |listener: &Option<TcpListener>| {
            port(
                listener
                    .as_ref()
                    .map(|listener| listener.local_addr().unwrap().port()),
            )
        };
        let path = |path: PathBuf| path.to_str().expect("temporary paths are text").to_owned();
        let udp = self
            .sockets
            .udp
            .as_ref()
            .map(|socket| socket.local_addr().unwrap().port());
        let victim = self.victim.as_ref().map_or(0, |victim| victim.process.id());
        let values = [
            ("@TOKEN@", self.marker.clone()),
            ("@IMAGE@", self.image.clone()),
            ("@FORBIDDEN@", self.forbidden.chars().rev().collect()),
            ("@CANARY@", path(self.tree.join("secret.txt"))),
            ("@TREE@", path(self.tree.clone())),
            ("@PROBE@", path(self.probe.clone())),
            ("@TCP@", tcp(&self.sockets.tcp)),
            ("@TCP6@", tcp(&self.sockets.tcp6)),
            ("@UDP@", port(udp)),
            ("@STREAM@", path(self.sockets.folder.join("stream"))),
            ("@DATAGRAM@", path(self.sockets.folder.join("datagram"))),
            ("@ABSTRACT@", abstract_name(&self.sockets.folder)),
            ("@VICTIM@", victim.to_string()),
            ("@SERVER@", self.site.server.to_string()),
            ("@SCRATCH_PARENT@", path(self.site.scratch.clone())),
            ("@IPC_KEY@", self.ipc_key.to_string()),
        ];
        let mut filled = code.to_owned();
        for (name, value) in values {
            filled = filled.replace(name, &value);
        }
        filled
    }

    /// What was touched of the listeners.
    pub fn contact(&self) -> Option<&'static str> {
        let sockets = &self.sockets;
        let tcp =
            |listener: &Option<TcpListener>| listener.as_ref().is_some_and(|l| l.accept().is_ok());
        let unix =
            |listener: &Option<UnixListener>| listener.as_ref().is_some_and(|l| l.accept().is_ok());
        let mut byte = [0];
        if tcp(&sockets.tcp) {
            return Some("a TCP connection came");
        }
        if tcp(&sockets.tcp6) {
            return Some("a TCP connection over IPv6 came");
        }
        if sockets
            .udp
            .as_ref()
            .is_some_and(|socket| socket.recv_from(&mut byte).is_ok())
        {
            return Some("a UDP datagram came");
        }
        if unix(&sockets.stream) {
            return Some("a connection to a Unix socket's path came");
        }
        if unix(&sockets.abstract_stream) {
            return Some("a connection to an abstract Unix socket came");
        }
        if sockets
            .datagram
            .as_ref()
            .is_some_and(|socket| socket.recv_from(&mut byte).is_ok())
        {
            return Some("a datagram to a Unix socket's path came");
        }
        None
    }

    /// What of the planted files is not as it was, and what appeared under the marker's name.
    pub fn changed_files(&self) -> Option<String> {
        let now = fingerprint(&self.tree);
        if now != self.tree_before {
            let new = now.iter().find(|line| !self.tree_before.contains(line));
            return Some(format!(
                "a planted file changed: {}",
                new.map_or("one is gone", |l| l)
            ));
        }
        self.remove_markers()
            .map(|path| format!("{} appeared", path.display()))
    }

    /// Whatever bears the marker's name where everybody may write; the first of it is told.
    fn remove_markers(&self) -> Option<PathBuf> {
        let common = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let folders = [&self.site.scratch, &self.site.folder];
        let mut found = None;
        for folder in folders.into_iter().chain(&common) {
            while let Some(path) = self.remove_marker(folder) {
                found.get_or_insert(path);
            }
        }
        found
    }

    /// What of the standard library is not as it was.
    pub fn changed_stdlib(&self) -> Option<String> {
        if self.stdlib_before != self.stdlib() {
            return Some("a file of the standard library changed".to_owned());
        }
        self.remove_marker(&self.site.stdlib)
            .map(|path| format!("{} appeared", path.display()))
    }

    pub fn changed_devices(&self) -> Option<String> {
        (self.devices_before != devices()).then(|| "a device's file changed".to_owned())
    }

    fn stdlib(&self) -> Vec<String> {
        [self.site.stdlib.join("os.py")]
            .iter()
            .map(|path| describe(path))
            .collect()
    }

    fn remove_marker(&self, folder: &Path) -> Option<PathBuf> {
        let mut entries = fs::read_dir(folder).ok()?.flatten();
        let entry =
            entries.find(|entry| entry.file_name().to_string_lossy().contains(&self.marker))?;
        let path = entry.path();
        fs::remove_file(&path)
            .or_else(|_| fs::remove_dir_all(&path))
            .ok()?;
        Some(path)
    }

    /// System V objects under the script's key, POSIX queues under the marker's name.
    pub fn ipc_objects(&self) -> Option<String> {
        let key = self.ipc_key.to_string();
        for (kind, remove) in [("shm", "-m"), ("sem", "-s"), ("msg", "-q")] {
            let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
            let line = table
                .lines()
                .find(|line| line.split_whitespace().next() == Some(&key));
            if let Some(id) = line.and_then(|line| line.split_whitespace().nth(1)) {
                let _ = Command::new("ipcrm").args([remove, id]).status();
                return Some(format!("a System V object ({kind}) with the script's key"));
            }
        }
        None
    }

    pub fn keys(&self) -> Option<String> {
        let keys = fs::read_to_string("/proc/keys").unwrap_or_default();
        keys.contains(&self.marker)
            .then(|| "a key in the host's keyring".to_owned())
    }

    pub fn cgroup(&self) -> Option<String> {
        let path = Path::new("/sys/fs/cgroup").join(&self.marker);
        let there = path.exists();
        let _ = fs::remove_dir(&path);
        there.then(|| "a control group with the marker's name".to_owned())
    }

    pub fn changed_victim(&mut self) -> Option<String> {
        let victim = self.victim.as_ref()?;
        // A signal acts before the next answer; only one that ends or stops it keeps that back. Who is
        // silent and stands has not had its turn yet.
        let deadline = Instant::now() + SILENCE;
        while !victim.answers(Duration::from_millis(500)) {
            if !processes::stands(victim.process.id()) || Instant::now() > deadline {
                return Some("the victim no longer answers".to_owned());
            }
        }
        let now = processes::fingerprint(victim.process.id());
        (now != self.victim_before).then(|| format!("the victim changed: {now}"))
    }
}

impl Victim {
    fn answers(&self, patience: Duration) -> bool {
        self.line.set_read_timeout(Some(patience)).unwrap();
        (&self.line)
            .write_all(b"?")
            .and_then(|()| (&self.line).read_exact(&mut [0]))
            .is_ok()
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(victim) = &mut self.victim {
            victim.end();
        }
        self.remove_markers();
        self.ipc_objects();
        // An attack can have taken permissions away, or left an entry that needs another call.
        for path in [&self.tree, &self.sockets.folder, &self.probe] {
            let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
        }
    }
}

impl Sockets {
    /// Opens what the script names, each ready to be asked without waiting.
    fn open(code: &str, folder: PathBuf) -> Self {
        let wants = |name: &str| code.contains(name);
        let mut sockets = Self {
            folder,
            ..Self::default()
        };
        if wants("@TCP@") {
            sockets.tcp = Some(TcpListener::bind("127.0.0.1:0").unwrap());
        }
        if wants("@TCP6@") {
            // A host without IPv6 has nothing to attack there.
            sockets.tcp6 = TcpListener::bind("[::1]:0").ok();
        }
        if wants("@UDP@") {
            sockets.udp = Some(UdpSocket::bind("127.0.0.1:0").unwrap());
        }
        if wants("@STREAM@") || wants("@DATAGRAM@") {
            fs::create_dir(&sockets.folder).unwrap();
            let (stream, datagram) = (
                sockets.folder.join("stream"),
                sockets.folder.join("datagram"),
            );
            sockets.stream = Some(UnixListener::bind(&stream).unwrap());
            sockets.datagram = Some(UnixDatagram::bind(&datagram).unwrap());
            for path in [&sockets.folder, &stream, &datagram] {
                fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            }
        }
        #[cfg(target_os = "linux")]
        if wants("@ABSTRACT@") {
            use std::os::linux::net::SocketAddrExt;
            let name = abstract_name(&sockets.folder);
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
            sockets.abstract_stream = Some(UnixListener::bind_addr(&address).unwrap());
        }
        for listener in [&sockets.tcp, &sockets.tcp6].into_iter().flatten() {
            listener.set_nonblocking(true).unwrap();
        }
        for listener in [&sockets.stream, &sockets.abstract_stream]
            .into_iter()
            .flatten()
        {
            listener.set_nonblocking(true).unwrap();
        }
        if let Some(socket) = &sockets.udp {
            socket.set_nonblocking(true).unwrap();
        }
        if let Some(socket) = &sockets.datagram {
            socket.set_nonblocking(true).unwrap();
        }
        sockets
    }
}

fn abstract_name(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Everything about a folder and what lies in it that a program could change.
fn fingerprint(folder: &Path) -> Vec<String> {
    let mut lines = vec![describe(folder)];
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten().flatten() {
            lines.push(describe(&entry.path()));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    lines.sort();
    lines
}

fn devices() -> Vec<String> {
    ["/dev/null", "/dev/random", "/dev/urandom"]
        .iter()
        .map(|path| describe(Path::new(path)))
        .collect()
}

/// The time of an inode's last change covers what has no field of its own: attributes, links.
fn describe(path: &Path) -> String {
    let Ok(m) = fs::symlink_metadata(path) else {
        return format!("{} is gone", path.display());
    };
    let content = if m.is_file() && m.len() < 4096 {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    format!(
        "{} {:o} {}:{} {} {} {}.{} {}.{} {}",
        path.display(),
        m.mode(),
        m.uid(),
        m.gid(),
        m.nlink(),
        m.size(),
        m.mtime(),
        m.mtime_nsec(),
        m.ctime(),
        m.ctime_nsec(),
        String::from_utf8_lossy(&content).trim_end(),
    )
}

/// The life of a victim: it answers until its line is closed.
pub fn victim() {
    let line = std::io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .expect("a descriptor to spare");
    let mut line = UnixStream::from(line);
    let mut byte = [0];
    while line.read_exact(&mut byte).is_ok() && line.write_all(&byte).is_ok() {}
}
