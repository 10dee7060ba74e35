//! Known paths of machines: programs and their files, and secrets.

/// Files of programs, in which permissions protect no secrets; [`SYSTEM_SECRETS`] is removed again.
pub(super) const SYSTEM: [&str; 24] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/nix/var/nix/profiles",
    "/gnu/store",
    "/run/current-system",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/ca-certificates",
    "/var/lib/alternatives",
    "/var/lib/gems",
    "/var/lib/ghc",
    "/var/lib/ghostscript",
    "/var/lib/sgml-base",
    "/var/lib/texmf",
];

/// The folder of the machine's settings, parts of which are private.
pub(super) const SETTINGS: &str = "/etc";

/// Folders of programs that people install and configure themselves, parts of which are private.
pub(super) const SELF_INSTALLED: [&str; 2] = ["/opt", "/usr/local"];

/// Targets of links in [`SYSTEM`], where the link must work.
pub(super) const SYSTEM_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/localtime"];

/// Secrets of the machine, which root can read.
pub(super) const SYSTEM_SECRETS: [&str; 27] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/docker",
    "/etc/containers",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ipsec.secrets",
    "/etc/ppp",
    "/etc/mysql/debian.cnf",
    "/etc/postfix/sasl_passwd",
    "/etc/security/opasswd",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/vault.d",
];

/// The folder of shared memory, which the outer layer creates for each worker.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Device files that programs expect.
pub(super) const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];
