//! The person's word on single calls: one question at a time, and what was granted (contract A2).
//!
//! Knows neither the client nor the protocol that carries a question: whoever runs a program hands
//! in an [`Asker`], and answers what comes out of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::tool::{ServerName, ToolName};

/// A question that was not answered by then is a no.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much of a call's arguments a person is shown.
const ARGUMENTS_SHOWN: usize = 2_000;

/// How a program's questions reach a person.
#[derive(Debug, Clone)]
pub enum Asker {
    Person(mpsc::Sender<Question>),
    /// Nobody can be asked; why, and the way out.
    Nobody(String),
}

impl Asker {
    /// A person, and where the questions come out. One at a time: nothing waits in between.
    pub fn person() -> (Self, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(1);
        (Self::Person(sender), questions)
    }
}

/// What a person says to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Once,
    /// This call, and every other of this tool in this program.
    Program,
    /// The same, as long as this process lives.
    Session,
    /// Not this call; what the program is told.
    No(String),
}

/// The answers that are offered, in the words that stand for them.
pub const CHOICES: [(&str, Answer); 3] = [
    ("once", Answer::Once),
    ("for this program", Answer::Program),
    ("for this session", Answer::Session),
];

/// The word for a no.
pub const NO: &str = "no";

impl Answer {
    /// What a choice stands for. Anything that was not offered is a no.
    pub fn of(choice: &str) -> Self {
        CHOICES
            .into_iter()
            .find(|(word, _)| *word == choice)
            .map_or_else(Self::no, |(_, answer)| answer)
    }

    pub fn no() -> Self {
        Self::No("the person said no".to_owned())
    }
}

/// One call that waits for a person's word.
#[derive(Debug)]
pub struct Question {
    text: String,
    reply: oneshot::Sender<Answer>,
}

impl Question {
    /// What the person reads: the tool, its arguments, and why they are asked.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn answer(self, answer: Answer) {
        // Nobody waits for it any more: the program was ended, or gave the call up.
        let _ = self.reply.send(answer);
    }

    /// Resolves when nobody waits for the answer any more.
    pub async fn withdrawn(&mut self) {
        self.reply.closed().await;
    }

    pub fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A call that needs a yes.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub server: &'a ServerName,
    /// What the server calls the tool. A yes is for this, whatever name a later list gives it.
    pub original: &'a str,
    pub name: &'a ToolName,
    pub arguments: &'a Map<String, Value>,
    /// What asks for a person's word.
    pub because: &'a str,
}

type Granted = HashSet<(ServerName, String)>;

/// What was granted for as long as this process lives.
#[derive(Debug, Clone, Default)]
pub struct Session(Arc<Mutex<Granted>>);

/// The consent that one program has, and its way of getting more.
#[derive(Debug)]
pub struct Consent {
    asker: Asker,
    session: Session,
    program: Mutex<Granted>,
    /// Held by the call whose question is open: questions are put one at a time, in the order of
    /// the calls. True once a question went unanswered: nobody is there.
    turn: tokio::sync::Mutex<bool>,
    /// Whether a question is open; the program's clock stands still then.
    open: watch::Sender<bool>,
}

impl Consent {
    pub fn new(asker: Asker, session: Session) -> Self {
        Self {
            asker,
            session,
            program: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            open: watch::channel(false).0,
        }
    }

    /// Whether a question is open, now and later.
    pub fn question_open(&self) -> watch::Receiver<bool> {
        self.open.subscribe()
    }

    /// Waits for a yes to this call. The error says why there is none.
    pub async fn to(&self, call: Call<'_>) -> Result<(), String> {
        if self.is_granted(&call) {
            return Ok(());
        }
        let person = match &self.asker {
            Asker::Person(person) => person,
            Asker::Nobody(why) => return Err(why.clone()),
        };
        let mut nobody_there = self.turn.lock().await;
        // The question before may have been answered for this one as well.
        if self.is_granted(&call) {
            return Ok(());
        }
        if *nobody_there {
            return Err("an earlier question of this program went unanswered".to_owned());
        }
        let (reply, answer) = oneshot::channel();
        let question = Question {
            text: text(&call),
            reply,
        };
        let answered = {
            let _open = Open::new(&self.open);
            timeout(PATIENCE, async {
                person.send(question).await.ok()?;
                answer.await.ok()
            })
            .await
        };
        match answered {
            Ok(Some(Answer::Once)) => Ok(()),
            Ok(Some(Answer::Program)) => {
                insert(&self.program, &call);
                Ok(())
            }
            Ok(Some(Answer::Session)) => {
                insert(&self.session.0, &call);
                Ok(())
            }
            Ok(Some(Answer::No(why))) => Err(why),
            Ok(None) => Err("the question was not answered, which counts as a no".to_owned()),
            Err(_) => {
                *nobody_there = true;
                Err(format!(
                    "nobody answered within {} minutes, which counts as a no",
                    PATIENCE.as_secs() / 60
                ))
            }
        }
    }

    fn is_granted(&self, call: &Call<'_>) -> bool {
        let tool = key(call);
        [&self.program, &*self.session.0]
            .iter()
            .any(|granted| lock(granted).contains(&tool))
    }
}

/// Says that a question is open, as long as it lives.
struct Open<'a>(&'a watch::Sender<bool>);

impl<'a> Open<'a> {
    fn new(open: &'a watch::Sender<bool>) -> Self {
        open.send_replace(true);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

fn key(call: &Call<'_>) -> (ServerName, String) {
    (call.server.clone(), call.original.to_owned())
}

fn insert(granted: &Mutex<Granted>, call: &Call<'_>) {
    lock(granted).insert(key(call));
}

fn lock(granted: &Mutex<Granted>) -> std::sync::MutexGuard<'_, Granted> {
    granted.lock().expect("nothing panics while it is held")
}

fn text(call: &Call<'_>) -> String {
    let (name, because) = (visible(call.name.as_str()), visible(call.because));
    let arguments = shown(call.arguments);
    format!(
        "A program wants to call {name} with\n\n{arguments}\n\nYou are asked because of {because}."
    )
}

/// Arguments as a person can read them, and how much of them is not shown.
fn shown(arguments: &Map<String, Value>) -> String {
    if arguments.is_empty() {
        return "no arguments".to_owned();
    }
    let compact = serde_json::to_string(arguments).unwrap_or_default();
    let text = if compact.len() > ARGUMENTS_SHOWN {
        compact
    } else {
        serde_json::to_string_pretty(arguments).unwrap_or(compact)
    };
    let mut shown = visible(&text);
    if let Some((end, _)) = shown.char_indices().nth(ARGUMENTS_SHOWN) {
        let hidden = shown[end..].chars().count();
        shown.truncate(end);
        shown.push_str(&format!(
            "\n... ({hidden} more characters that are not shown)"
        ));
    }
    shown
}

/// A program's text, with what could disguise it (terminal codes, changes of direction, what has
/// no width) written as an escape.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        let disguises = matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}');
        if disguises || (c.is_control() && c != '\n') {
            visible.extend(c.escape_unicode());
        } else {
            visible.push(c);
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;
    use serde_json::json;

    use super::*;

    struct Tool {
        server: ServerName,
        name: ToolName,
        arguments: Map<String, Value>,
    }

    impl Tool {
        fn new(name: &str) -> Self {
            Self {
                server: ServerName::new("crm"),
                name: ToolName::new(name),
                arguments: Map::from_iter([("amount".to_owned(), json!(100))]),
            }
        }

        fn call(&self) -> Call<'_> {
            Call {
                server: &self.server,
                original: self.name.as_str(),
                name: &self.name,
                arguments: &self.arguments,
                because: "tools.confirm",
            }
        }
    }

    /// Puts these calls at once to a person who gives these answers, and counts the questions.
    async fn put(tools: &[Tool], answers: &[&str], session: &Session) -> (Vec<bool>, usize) {
        let (asker, mut questions) = Asker::person();
        let consent = Consent::new(asker, session.clone());
        let calls = join_all(tools.iter().map(|tool| consent.to(tool.call())));
        let person = async {
            let mut asked = 0;
            while let Some(question) = questions.recv().await {
                assert!(*consent.question_open().borrow());
                question.answer(Answer::of(answers[asked]));
                asked += 1;
                if asked == answers.len() {
                    break;
                }
            }
            asked
        };
        let (granted, asked) = futures::join!(calls, async {
            if answers.is_empty() { 0 } else { person.await }
        });
        assert!(!*consent.question_open().borrow());
        (granted.iter().map(Result::is_ok).collect(), asked)
    }

    // contract: A2
    #[tokio::test]
    async fn answers_hold_for_what_they_were_given_for() {
        let refund = || Tool::new("mcp__crm__refund");
        let cases: &[(&[&str], &[bool])] = &[
            (&["once", "no", "once"], &[true, false, true]),
            (&["no", "for this program"], &[false, true, true]),
            (&["for this program"], &[true, true, true]),
            (&["for this session"], &[true, true, true]),
            (&["yes", "", "Once"], &[false, false, false]),
        ];
        for (answers, expected) in cases {
            let session = Session::default();
            let (granted, asked) = put(&[refund(), refund(), refund()], answers, &session).await;
            assert_eq!(
                (&*granted, asked),
                (*expected, answers.len()),
                "{answers:?}"
            );
            let again: &[&str] = match answers[0] {
                "for this session" => &[],
                _ => &["once"],
            };
            let (granted, _) = put(&[refund()], again, &session).await;
            assert_eq!(granted, [true], "another program, after {answers:?}");
        }
        let tools = [refund(), Tool::new("mcp__crm__close")];
        let answers = ["for this program", "no"];
        let (granted, _) = put(&tools, &answers, &Session::default()).await;
        assert_eq!(granted, [true, false], "a yes is for one tool");
    }

    // contract: A2
    #[tokio::test(start_paused = true)]
    async fn ten_minutes_of_silence_are_a_no_and_the_last_question() {
        let (asker, mut questions) = Asker::person();
        let consent = Consent::new(asker, Session::default());
        let tool = Tool::new("mcp__crm__refund");
        let started = tokio::time::Instant::now();
        let (refused, question) = tokio::join!(consent.to(tool.call()), questions.recv());
        assert_eq!(
            refused.unwrap_err(),
            "nobody answered within 10 minutes, which counts as a no"
        );
        assert_eq!(started.elapsed(), Duration::from_secs(600));
        assert!(question.unwrap().is_withdrawn());
        let refused = consent.to(tool.call()).await.unwrap_err();
        assert!(refused.contains("an earlier question"), "{refused}");
        assert_eq!(started.elapsed(), Duration::from_secs(600));
    }

    // contract: A2
    #[tokio::test]
    async fn without_an_answer_there_is_no_yes() {
        let tool = Tool::new("mcp__crm__refund");
        let nobody = Consent::new(Asker::Nobody("why".to_owned()), Session::default());
        assert_eq!(nobody.to(tool.call()).await, Err("why".to_owned()));

        let (asker, mut questions) = Asker::person();
        let consent = Consent::new(asker, Session::default());
        let (refused, ()) = tokio::join!(consent.to(tool.call()), async {
            drop(questions.recv().await);
        });
        assert!(refused.unwrap_err().contains("was not answered"));
        drop(questions);
        assert!(consent.to(tool.call()).await.is_err(), "the asker is gone");
    }

    // contract: A2
    #[tokio::test]
    async fn a_call_that_is_given_up_withdraws_its_question() {
        let (asker, mut questions) = Asker::person();
        let consent = Consent::new(asker, Session::default());
        let tool = Tool::new("mcp__crm__refund");
        let mut call = Box::pin(consent.to(tool.call()));
        assert!((&mut call).now_or_never().is_none());
        let mut question = questions.recv().await.unwrap();
        assert!(question.withdrawn().now_or_never().is_none());
        drop(call);
        question.withdrawn().await;
        assert!(!*consent.question_open().borrow());
    }

    // contract: A2
    #[test]
    fn a_question_shows_the_tool_and_bounded_readable_arguments() {
        let mut tool = Tool::new("mcp__crm__refund");
        assert_eq!(
            text(&tool.call()),
            "A program wants to call mcp__crm__refund with\n\n{\n  \"amount\": 100\n}\n\nYou are asked because of tools.confirm."
        );
        tool.arguments = Map::new();
        assert!(text(&tool.call()).contains(" with\n\nno arguments\n\n"));
        tool.arguments = Map::from_iter([("to".to_owned(), json!("a\u{202e}b\u{9b}31m"))]);
        assert!(text(&tool.call()).contains(r#""to": "a\u{202e}b\u{9b}31m""#));
        tool.arguments = Map::from_iter([("body".to_owned(), json!("é".repeat(5_000)))]);
        let long = text(&tool.call());
        assert!(long.chars().count() < 2_300);
        assert!(
            long.contains("\n... (3011 more characters that are not shown)"),
            "{long}"
        );
    }
}
