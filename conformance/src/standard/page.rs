//! docs/conformance.md: what became of each operator's cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Counts, Ended, Reason, Suite, Verdict};

#[derive(Default)]
struct Row {
    counts: Counts,
    failed: Vec<String>,
    refused: BTreeSet<Reason>,
}

/// The page for these suites and how their cases ended.
pub fn page(results: &[(Suite, Vec<Ended>)]) -> String {
    let mut page = String::from(
        "# Conformance to ONNX\n\nThe standard's own cases on the `cpu` backend, through import and all passes, each run \
         twice in one session. Outputs are held to each case's tolerances, types and shapes to equality; drawn numbers \
         are judged by their range. The suite `com.microsoft` holds ONNX Runtime's own operators to what \
         that runtime computes; where its CPU kernels cannot, to the operator's description. Written by `cargo xtask conformance onnx`.\n\n",
    );
    let packages: BTreeSet<String> =
        results.iter().map(|(suite, _)| suite.index.package.to_string()).collect();
    let packages: Vec<String> = packages.into_iter().collect();
    write!(
        page,
        "Cases of the packages {}.\n\n| suite | cases | passed | failed | refused |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
        packages.join(" and ")
    )
    .expect("a string takes all");
    for (suite, ended) in results {
        let Counts { passed, failed, refused } = Counts::of(ended);
        let total = ended.len();
        writeln!(page, "| {} | {total} | {passed} | {failed} | {refused} |", suite.name)
            .expect("a string takes all");
    }
    let described: usize = results
        .iter()
        .map(|(suite, _)| suite.index.cases.values().filter(|case| case.described).count())
        .sum();
    if described > 0 {
        write!(page, "\nOf the cases of `com.microsoft`, {described} are held to the description.\n")
            .expect("a string takes all");
    }
    let rounded: Vec<&str> = results
        .iter()
        .flat_map(|(_, ended)| ended)
        .filter(|one| one.verdict == Verdict::Rounded)
        .map(|one| one.case.as_str())
        .collect();
    if !rounded.is_empty() {
        write!(
            page,
            "\nOf those that pass, {} do so within one unit in the last place of the output's largest number, the rounding \
             of the expected numbers themselves, and not within the case's own tolerances: {}.\n",
            rounded.len(),
            rounded.join(", ")
        )
        .expect("a string takes all");
    }
    page.push_str(
        "\n## By operator\n\nAn operator's cases are those whose model has it, in all suites. Versions are those of the \
         operator set from which on another form is read; a form holds until the next one.\n\n\
         | operator | read from version | passed | failed | refused |\n| --- | --- | ---: | ---: | --- |\n",
    );
    let known = known();
    for (operator, row) in rows(results) {
        let versions = known.get(operator.as_str()).cloned().unwrap_or_default();
        let mut refused = row.counts.refused.to_string();
        let reasons: BTreeSet<String> = row
            .refused
            .iter()
            .map(|r| {
                if r.operator == operator {
                    r.reason.clone()
                } else {
                    format!("{}: {}", r.operator, r.reason)
                }
            })
            .collect();
        if !reasons.is_empty() {
            let reasons: Vec<String> = reasons.into_iter().collect();
            refused = format!("{refused}: {}", reasons.join("; ").replace('|', "\\|"));
        }
        let mut failed = row.counts.failed.to_string();
        if !row.failed.is_empty() {
            failed = format!("{failed}: {}", row.failed.join(", "));
        }
        writeln!(page, "| {operator} | {versions} | {} | {failed} | {refused} |", row.counts.passed)
            .expect("a string takes all");
    }
    page
}

fn rows(results: &[(Suite, Vec<Ended>)]) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (suite, ended) in results {
        for one in ended {
            let Some(case) = suite.index.cases.get(&one.case) else { continue };
            for operator in &case.operators {
                let row = rows.entry(operator.clone()).or_default();
                row.counts.add(&one.verdict);
                match &one.verdict {
                    Verdict::Passed | Verdict::Rounded => {}
                    Verdict::Failed { .. } => row.failed.push(one.case.clone()),
                    Verdict::Refused { reasons } => row.refused.extend(reasons.iter().cloned()),
                }
            }
        }
    }
    rows
}

/// For each operator the versions of its readings, by domain where that is not ONNX's own.
fn known() -> BTreeMap<&'static str, String> {
    let mut versions: BTreeMap<&str, BTreeMap<&str, BTreeSet<i64>>> = BTreeMap::new();
    for (domain, name, version) in armet_importers::onnx::operators() {
        versions.entry(name).or_default().entry(domain).or_default().insert(version);
    }
    let line = |domains: BTreeMap<&str, BTreeSet<i64>>| {
        let one = |(domain, versions): (&str, BTreeSet<i64>)| {
            let list: Vec<String> = versions.iter().map(i64::to_string).collect();
            let list = list.join(", ");
            if domain.is_empty() { list } else { format!("{domain} {list}") }
        };
        domains.into_iter().map(one).collect::<Vec<_>>().join("; ")
    };
    versions.into_iter().map(|(name, domains)| (name, line(domains))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::{Case, Index, Package};

    #[test]
    fn an_operator_counts_in_all_cases_that_have_it() {
        let case = |operators: &[&str]| Case {
            rtol: 0.0,
            atol: 0.0,
            operators: operators.iter().map(ToString::to_string).collect(),
            ..Case::default()
        };
        let cases = [("a", case(&["Add"])), ("b", case(&["Add", "Whiten"])), ("c", case(&["Add"]))];
        let cases = cases.into_iter().map(|(name, case)| (name.to_owned(), case)).collect();
        let suite = Suite {
            name: "node".to_owned(),
            folder: "x".into(),
            index: Index { package: Package::Onnx("1".to_owned()), cases },
        };
        let refused =
            Reason { operator: "Whiten".to_owned(), reason: "there is no such operator".to_owned() };
        let ended = [
            ("a", Verdict::Passed),
            ("b", Verdict::Refused { reasons: vec![refused] }),
            ("c", Verdict::Failed { why: "x".to_owned() }),
        ];
        let ended =
            ended.into_iter().map(|(case, verdict)| Ended { case: case.to_owned(), verdict }).collect();
        let page = page(&[(suite, ended)]);
        assert!(page.contains("| node | 3 | 1 | 1 | 1 |"), "{page}");
        assert!(page.contains("| 1 | 1: c | 1: Whiten: there is no such operator |"), "{page}");
        assert!(page.contains("| Whiten |  | 0 | 0 | 1: there is no such operator |"), "{page}");
    }
}
