//! What one program spared its model's context: the count that `benches/context.rs` makes for whole
//! scenarios. Pure.

use crate::report::Report;

/// `ptc-mcp run --stats`: what a model reads and writes for this program, and for the same calls
/// made one by one. Definitions of tools are in neither.
pub(crate) fn stats(code: &str, report: &Report) -> String {
    let program = serde_json::json!({ "code": code }).to_string().len();
    let answer = report.text().len();
    let arguments: usize = report.calls.iter().map(|call| call.argument_bytes).sum();
    let results: usize = report.calls.iter().map(|call| call.result_bytes).sum();
    let (here, direct) = (program + answer, arguments + results);
    let ratio = match direct {
        0 => String::new(),
        _ => format!(", {:.1} % of that", here as f64 * 100.0 / direct as f64),
    };
    format!(
        "context: {} direct calls: {direct} bytes (arguments {arguments}, results {results}); \
         this program: {here} bytes (program {program}, answer {answer}){ratio}\n",
        report.calls.len()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Trace;
    use crate::gate::{CallRecord, Outcome};

    #[test]
    fn both_sides_are_counted_in_bytes() {
        let call = CallRecord {
            tool: "mcp__a__b".to_owned(),
            arguments: "{}".to_owned(),
            argument_bytes: 10,
            result_bytes: 990,
            outcome: Outcome::Ok,
            duration: Duration::ZERO,
            read_only: true,
        };
        let mut report = Report {
            warnings: Vec::new(),
            outcome: Ok(()),
            output: "é\n".to_owned(),
            emitted: None,
            calls: vec![call.clone(), call],
            elapsed: Duration::ZERO,
            trace: Trace::Off,
        };
        assert_eq!(
            stats("print()\n", &report),
            "context: 2 direct calls: 2000 bytes (arguments 20, results 1980); \
             this program: 53 bytes (program 20, answer 33), 2.6 % of that\n"
        );
        report.calls.clear();
        assert!(stats("", &report).ends_with("(program 11, answer 33)\n"));
    }
}
