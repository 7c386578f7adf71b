//! What the end of a replica means for its job: success, the program's fault, worth another try, or a consequence.

pub const SIGABRT: i32 = 6;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGTERM: i32 = 15;

/// What an agent saw of the end of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cause: Cause,
}

/// What the replica or its agent said of the end; `Unsaid` leaves the judgement to the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    #[default]
    Unsaid,
    Done,
    UserError,
    OutOfMemory,
    /// A connection to another replica broke: always a consequence of that one's end.
    PeerLost,
    /// The agent ended it: a stop that was ordered, or an agent that leaves.
    Stopped,
    Data,
    Storage,
    /// Ended by the platform's force, for no fault of the program.
    Killed,
    /// Two computations that must agree did not: a fault of the machine.
    Numeric,
}

impl Cause {
    pub const ALL: [Cause; 10] = [
        Cause::Unsaid,
        Cause::Done,
        Cause::UserError,
        Cause::OutOfMemory,
        Cause::PeerLost,
        Cause::Stopped,
        Cause::Data,
        Cause::Storage,
        Cause::Killed,
        Cause::Numeric,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Unsaid => "",
            Cause::Done => "done",
            Cause::UserError => "user_error",
            Cause::OutOfMemory => "out_of_memory",
            Cause::PeerLost => "peer_lost",
            Cause::Stopped => "stopped",
            Cause::Data => "data",
            Cause::Storage => "storage",
            Cause::Killed => "killed",
            Cause::Numeric => "numeric",
        }
    }
}

/// What follows from an end, if nothing else ended the generation first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Success,
    /// Another replica's end explains it.
    Consequence,
    /// The platform ended it: the job goes on elsewhere and no restart is used.
    Preempted,
    /// Another try may help: one restart is used.
    Retryable,
    /// Another try would end the same way: the job fails.
    Permanent,
}

/// Causes that were said come first, then the status: 0 is success, 1 to 127 permanent, 128 + signal as the signal.
pub fn judge(exit: &Exit) -> Judgement {
    match exit.cause {
        Cause::PeerLost => return Judgement::Consequence,
        Cause::Stopped => return Judgement::Preempted,
        Cause::OutOfMemory | Cause::UserError | Cause::Data | Cause::Storage => return Judgement::Permanent,
        Cause::Numeric => return Judgement::Retryable,
        Cause::Unsaid | Cause::Done | Cause::Killed => {}
    }
    if let Some(signal) = exit.signal {
        return judge_signal(signal);
    }
    match exit.code {
        Some(0) => Judgement::Success,
        Some(code @ 129..=255) => judge_signal(code - 128),
        Some(_) => Judgement::Permanent,
        None => Judgement::Retryable,
    }
}

/// SIGKILL and SIGTERM come from outside the program, SIGABRT and SIGSEGV often from a machine's passing trouble.
fn judge_signal(signal: i32) -> Judgement {
    match signal {
        SIGABRT | SIGSEGV | SIGKILL | SIGTERM => Judgement::Retryable,
        _ => Judgement::Permanent,
    }
}

/// "exit 7", "signal 9": how a person reads a status.
pub fn describe(exit: &Exit) -> String {
    match (exit.signal, exit.code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_decides_when_no_cause_was_said() {
        let code = |code| Exit { code: Some(code), ..Exit::default() };
        let signal = |signal| Exit { signal: Some(signal), ..Exit::default() };
        let table = [
            (code(0), Judgement::Success),
            (code(1), Judgement::Permanent),
            (code(7), Judgement::Permanent),
            (code(127), Judgement::Permanent),
            (code(128), Judgement::Permanent),
            (code(134), Judgement::Retryable),
            (code(137), Judgement::Retryable),
            (code(139), Judgement::Retryable),
            (code(143), Judgement::Retryable),
            (code(136), Judgement::Permanent),
            (code(255), Judgement::Permanent),
            (code(-1), Judgement::Permanent),
            (signal(SIGABRT), Judgement::Retryable),
            (signal(SIGSEGV), Judgement::Retryable),
            (signal(SIGKILL), Judgement::Retryable),
            (signal(SIGTERM), Judgement::Retryable),
            (signal(4), Judgement::Permanent),
            (signal(8), Judgement::Permanent),
            (Exit::default(), Judgement::Retryable),
        ];
        for (exit, expected) in table {
            assert_eq!(judge(&exit), expected, "{}", describe(&exit));
        }
    }

    #[test]
    fn a_cause_that_was_said_outweighs_the_status() {
        let said = |cause| Exit { signal: Some(SIGKILL), cause, code: None };
        assert_eq!(judge(&said(Cause::OutOfMemory)), Judgement::Permanent);
        assert_eq!(judge(&said(Cause::PeerLost)), Judgement::Consequence);
        assert_eq!(judge(&said(Cause::Stopped)), Judgement::Preempted);
        assert_eq!(judge(&said(Cause::Killed)), Judgement::Retryable);
        for cause in [Cause::UserError, Cause::Data, Cause::Storage] {
            assert_eq!(judge(&Exit { code: Some(0), cause, signal: None }), Judgement::Permanent);
        }
    }
}
