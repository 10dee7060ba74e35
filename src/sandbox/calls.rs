//! Filters system calls with seccomp.
//!
//! Refuses calls by name that ordinary programs do not need: those that lead out of the sandbox or
//! into parts of the kernel with a history of escapes. Processes inside may communicate: `connect`,
//! `bind`, `listen` and `sendto` are permitted.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::model::confinement::Network;

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCH: TargetArch = TargetArch::riscv64;

/// The bit of x32 system calls on x86-64, which are the same calls.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Calls whose x32 number differs by more than [`X32`].
#[cfg(target_arch = "x86_64")]
const X32_OWN: [(c_long, i64); 3] = [(libc::SYS_ioctl, 514), (libc::SYS_kexec_load, 528), (libc::SYS_move_pages, 533)];

/// Numbers missing from the libc crate; the same on all architectures.
const OPEN_TREE_ATTR: c_long = 467;
const QUOTACTL_FD: c_long = 443;
const MEMFD_SECRET: c_long = 447;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Calls that are always refused.
const REFUSED: &[c_long] = &[
    // Queues into the kernel that no filter inspects.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the user's session.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Kernel programs and observation of other processes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Mounts and other roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    // Memory that no statistic of a process shows.
    MEMFD_SECRET,
    // The machine as a whole.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// New namespaces, which grant capabilities.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // The time namespace; in `clone` this bit belongs to the signal number and is unused.
    0x80,
];

/// Calls that affect any process of the same user by its id, which no other layer checks: the
/// argument, and the value that means the caller itself.
const BY_NUMBER: [(c_long, u8, u64); 10] = [
    (libc::SYS_sched_setscheduler, 0, 0),
    (libc::SYS_sched_setparam, 0, 0),
    (libc::SYS_sched_setattr, 0, 0),
    (libc::SYS_sched_setaffinity, 0, 0),
    (libc::SYS_setpriority, 0, 0),
    (libc::SYS_setpriority, 1, 0),
    (libc::SYS_ioprio_set, 0, 1),
    (libc::SYS_ioprio_set, 1, 0),
    (libc::SYS_migrate_pages, 0, 0),
    (libc::SYS_move_pages, 0, 0),
];

/// The way of scheduling that processes begin with (`SCHED_OTHER`).
const USUAL_POLICY: u64 = 0;

/// System V objects belong to no process: no statistic shows their memory, and they outlive their
/// creator. If a layer removes them with the attempt, up to this size may be requested at once; the
/// kernel permits few objects, so the total stays small.
const SYSTEM_V: [(c_long, SeccompCmpArgLen, u64); 2] =
    [(libc::SYS_shmget, SeccompCmpArgLen::Qword, 4096), (libc::SYS_semget, SeccompCmpArgLen::Dword, 32)];

/// Objects that all processes of a user share: without another layer, the user's own could be read
/// or deleted, and new ones would outlive the attempt.
const OF_THE_USER: [c_long; 10] = [
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that set extended attributes of any file by path, which no other layer checks. Refused if
/// no layer hides other files.
const ATTRIBUTES: [c_long; 8] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
];

/// Calls that give a file to a user and a group, with the argument of the user; that of the group
/// follows.
const OWNERS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, 1),
    (libc::SYS_fchown, 1),
    (libc::SYS_fchownat, 2),
];

/// The user or group that a call of [`OWNERS`] leaves as it is.
const UNCHANGED: u64 = 0xFFFF_FFFF;

/// Lets a process misreport its own environment and arguments, and their length.
const LAYOUT: u64 = 35;

/// A lease, which blocks other openers of a file and needs only read access.
const LEASE: u64 = 1024;

/// Inserts input into a terminal, and the old way to do so on a console: TIOCSTI, TIOCLINUX. The
/// types of these constants in `libc` differ between C libraries.
const TERMINAL: [u64; 2] = [0x5412, 0x541C];

/// The ioctl types of file systems on which worktrees are reused: generic ones and those of ext4,
/// XFS, btrfs and F2FS. Some of them change a file's blocks without its times, by which changes are
/// detected.
const OF_FILES: [u64; 5] = [0x66, 0x76, 0x58, 0x94, 0xF5];

/// The permitted requests of these types: those that only read, and those that update the change
/// time and need a writable handle. Setting a file's flags needs only a readable handle and is
/// refused.
const ON_FILES: [u64; 6] = [
    // FS_IOC_GETFLAGS, FS_IOC_FIEMAP.
    0x8008_6601,
    0xC020_660B,
    // FS_IOC_GETVERSION, FS_IOC_FSGETXATTR.
    0x8008_7601,
    0x801C_581F,
    // FICLONE, FICLONERANGE.
    0x4004_9409,
    0x4020_940D,
];

/// The bits of a request's type.
const TYPE: u64 = 0xFF00;

/// Netlink families that only report the network: routes, and the process's own sockets.
const NETLINK: [libc::c_int; 2] = [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG];

/// Creates the filters; `alone` is true if no other layer hides the processes that some calls
/// affect.
pub(crate) fn filters(network: Network, alone: bool) -> Result<Vec<BpfProgram>, Error> {
    // Their flags are in memory, which no filter can read; libraries fall back to the older calls.
    let unknown = rules([libc::SYS_clone3, FILE_SETATTR]);
    let unsupported = rules(ATTRIBUTES.into_iter().filter(|_| alone));
    let refused = refused(network, alone)?;
    let ignored = if alone { usual_policy()? } else { Rules::new() };
    let all = [(unknown, libc::ENOSYS), (unsupported, libc::EOPNOTSUPP), (refused, libc::EPERM), (ignored, 0)];
    all.into_iter().filter(|(rules, _)| !rules.is_empty()).map(|(rules, errno)| program(rules, errno)).collect()
}

/// Refuses calls with any arguments.
fn rules(calls: impl IntoIterator<Item = c_long>) -> Rules {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Applies the filters to this process and its children for good. Allocates nothing.
pub(crate) fn apply(filters: &[BpfProgram]) -> Result<(), Error> {
    Ok(filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))?)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, Error> {
    #[cfg(target_arch = "x86_64")]
    let rules: Rules = rules.into_iter().flat_map(|(call, rules)| by_all_numbers(call, rules)).collect();
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, errno, ARCH)?.try_into()?)
}

/// Applies a call's rules to all of its numbers.
#[cfg(target_arch = "x86_64")]
fn by_all_numbers(call: i64, rules: Vec<SeccompRule>) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    let own = X32_OWN.into_iter().filter(move |(other, _)| *other == call).map(|(_, own)| own | X32);
    [call, call | X32].into_iter().chain(own).map(move |number| (number, rules.clone()))
}

fn refused(network: Network, alone: bool) -> Result<Rules, Error> {
    let mut rules = rules(REFUSED.iter().copied());
    let has =
        |bit: libc::c_int| one(0, SeccompCmpOp::MaskedEq(u64::from(bit.unsigned_abs())), bit.unsigned_abs().into());
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        let bits = NAMESPACES.into_iter().filter(|bit| call == libc::SYS_unshare || *bit != 0x80);
        rules.insert(call, bits.map(has).collect::<Result<_, _>>()?);
    }
    rules.insert(libc::SYS_prctl, vec![one(0, SeccompCmpOp::Eq, LAYOUT)?]);
    rules.insert(libc::SYS_ioctl, requests()?);
    let mut families = vec![libc::AF_UNIX, libc::AF_NETLINK];
    if network != Network::None {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let strange = families.into_iter().map(|family| condition(0, SeccompCmpOp::Ne, family.unsigned_abs().into()));
    let netlink = std::iter::once(condition(0, SeccompCmpOp::Eq, libc::AF_NETLINK.unsigned_abs().into()))
        .chain(NETLINK.into_iter().map(|kind| condition(2, SeccompCmpOp::Ne, kind.unsigned_abs().into())));
    let sockets = vec![
        SeccompRule::new(strange.collect::<Result<_, _>>()?)?,
        SeccompRule::new(netlink.collect::<Result<_, _>>()?)?,
    ];
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![one(0, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?]);
    rules.insert(libc::SYS_fcntl, vec![one(1, SeccompCmpOp::Eq, LEASE)?]);
    for (call, length, most) in SYSTEM_V {
        let above = SeccompCondition::new(1, length, SeccompCmpOp::Gt, most)?;
        rules.insert(call, if alone { Vec::new() } else { vec![SeccompRule::new(vec![above])?] });
    }
    if !alone {
        rules.extend(owners()?);
    }
    if alone {
        rules.extend(OF_THE_USER.into_iter().map(|call| (call, Vec::new())));
        // The same call by an older number, if the kernel has it.
        #[cfg(not(target_arch = "riscv64"))]
        rules.insert(libc::SYS_semop, Vec::new());
        for (call, argument, own) in BY_NUMBER {
            let mut another = vec![condition(argument, SeccompCmpOp::Ne, own)?];
            if call == libc::SYS_sched_setscheduler {
                another.push(condition(1, SeccompCmpOp::Ne, USUAL_POLICY)?);
            }
            rules.entry(call).or_default().push(SeccompRule::new(another)?);
        }
        let another = condition(0, SeccompCmpOp::Ne, 0)?;
        // Reading another process's limits is harmless. The address counts in full: one with an
        // empty lower half is still an address.
        let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![another, sets])?]);
    }
    Ok(rules)
}

/// Ignores requests for the usual scheduling of a thread by its number, and reports success.
///
/// `ZeroMQ` makes one for each of its own threads, which have it already, and aborts if it is
/// refused.
fn usual_policy() -> Result<Rules, Error> {
    let usual = vec![condition(0, SeccompCmpOp::Ne, 0)?, condition(1, SeccompCmpOp::Eq, USUAL_POLICY)?];
    Ok(Rules::from([(libc::SYS_sched_setscheduler, vec![SeccompRule::new(usual)?])]))
}

/// Refuses to give files to other users and groups.
///
/// A user namespace has one of each. For others the kernel reports that the number is invalid.
/// fakeroot and programs like it take that for a fault: they expect to lack the permission.
fn owners() -> Result<Rules, Error> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut rules = Rules::new();
    for (call, argument) in OWNERS {
        for (position, own) in [(*argument, user), (argument + 1, group)] {
            let others = [own.into(), UNCHANGED].map(|id| condition(position, SeccompCmpOp::Ne, id));
            let others = others.into_iter().collect::<Result<Vec<_>, Error>>()?;
            rules.entry(*call).or_default().push(SeccompRule::new(others)?);
        }
    }
    Ok(rules)
}

/// Refuses requests to terminals, and all but known requests to file systems.
fn requests() -> Result<Vec<SeccompRule>, Error> {
    let typing = TERMINAL.into_iter().map(|request| one(1, SeccompCmpOp::Eq, request));
    let of_files = OF_FILES.into_iter().map(|kind| {
        let known = ON_FILES.into_iter().filter(|request| request & TYPE == kind << 8);
        let unknown = known.map(|request| condition(1, SeccompCmpOp::Ne, request));
        let all = std::iter::once(condition(1, SeccompCmpOp::MaskedEq(TYPE), kind << 8)).chain(unknown);
        Ok(SeccompRule::new(all.collect::<Result<_, _>>()?)?)
    });
    typing.chain(of_files).collect()
}

fn one(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(vec![condition(argument, operator, value)?])?)
}

/// Compares the lower half of an argument: the kernel reads no more of these arguments, none of
/// which is an address.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

errors! {
    /// Why calls cannot be filtered.
    #[derive(Debug, thiserror::Error)] pub(crate) enum Error;
    Filter(#[from] seccompiler::BackendError): "cannot create the filter of system calls";
    Apply(#[from] seccompiler::Error): "the kernel refused the filter of system calls";
}
