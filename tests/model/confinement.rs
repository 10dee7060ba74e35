//! The layers that a manifest names.

use git_handoff::model::confinement::{BWRAP, LANDLOCK, NONE, SECCOMP, missing, names};

#[test]
fn layers_are_counted_by_name() {
    let all = "landlock:7 seccomp bwrap:0.8";
    assert_eq!(names(all).collect::<Vec<_>>(), [LANDLOCK, SECCOMP, BWRAP]);
    assert_eq!(names(NONE).count(), 0);
    assert_eq!(missing(all, &[LANDLOCK, SECCOMP, BWRAP]), None);
    assert_eq!(missing("landlock:7 seccomp", &[LANDLOCK, BWRAP]), Some(BWRAP));
    let off = ["none landlock:7 seccomp", "landlock:7 seccomp off", "landlock:off seccomp", "landlock seccomp:NONE"];
    for less in off {
        assert_eq!(missing(less, &[LANDLOCK, SECCOMP]), Some(LANDLOCK), "{less}");
        assert_eq!(missing(less, &[]), None);
    }
    assert_eq!(missing("landlock:7 seccomp offline", &[LANDLOCK, SECCOMP]), None);
    for less in [NONE, "", "landlocked seccomp", "LANDLOCK seccomp", "none landlock:"] {
        assert!(missing(less, &[LANDLOCK, SECCOMP]).is_some(), "{less}");
    }
}
