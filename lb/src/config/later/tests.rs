use super::*;

#[test]
fn every_default_of_the_table_is_yaml() {
    for row in LATER {
        assert!(yaml::read(row.default).is_ok(), "{}", row.key);
    }
}
