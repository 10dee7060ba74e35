//! How large what a chain holds may be.

use git_handoff::model::bounds::{CONTAINERS, FREE, Meter, VALUES, is_light};

#[test]
fn brackets_in_strings_do_not_count() {
    assert!(is_light(format!(r#"["{}"]"#, r#"[{,\""#.repeat(CONTAINERS)).as_bytes()));
    assert!(is_light("[".repeat(CONTAINERS).as_bytes()) && !is_light("[".repeat(CONTAINERS + 1).as_bytes()));
    assert!(is_light(",".repeat(VALUES).as_bytes()) && !is_light(",".repeat(VALUES + 1).as_bytes()));
    assert!(!is_light(format!(r#""\\"{}"#, "{".repeat(CONTAINERS + 1)).as_bytes()));
}

#[test]
fn a_chain_may_come_to_so_much_and_to_more_where_more_is_stored() {
    let mut meter = Meter::default();
    assert!(meter.add(FREE, 0).is_ok());
    assert!(meter.add(1024, 1).is_ok());
    assert!(meter.add(1, 0).is_err());
}
