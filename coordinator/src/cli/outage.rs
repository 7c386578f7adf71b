//! A coordinator that does not answer: said once after some seconds, and once when one answers again.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Elections and restarts are over sooner: they are nobody's worry.
const QUIET: Duration = Duration::from_secs(2);

type Tell = Box<dyn Fn(&str)>;

/// Since when there was no answer, over any number of calls.
#[derive(Default)]
pub struct Outage {
    since: Option<Instant>,
    said: bool,
    tell: Option<Tell>,
}

impl Outage {
    pub fn tell_through(&mut self, tell: impl Fn(&str) + 'static) {
        self.tell = Some(Box::new(tell));
    }

    /// A try that began at `begun` failed in a way that another one may mend.
    pub fn goes_on(&mut self, why: &str, begun: Instant, now: Instant) {
        let since = *self.since.get_or_insert(begun);
        if !self.said && now - since >= QUIET {
            self.said = true;
            self.say(&format!("coordinator unreachable ({why}); trying again ..."));
        }
    }

    /// A coordinator answered, whatever it said.
    pub fn over(&mut self) {
        self.since = None;
        if std::mem::take(&mut self.said) {
            self.say("coordinator reachable again");
        }
    }

    fn say(&self, text: &str) {
        if let Some(tell) = &self.tell {
            tell(text);
        }
    }
}

impl fmt::Debug for Outage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outage").field("since", &self.since).field("said", &self.said).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_long_outage_is_said_once_and_a_short_one_never() {
        let said = Rc::new(RefCell::new(Vec::new()));
        let heard = said.clone();
        let mut outage = Outage::default();
        outage.tell_through(move |text| heard.borrow_mut().push(text.to_owned()));
        let start = Instant::now();
        outage.goes_on("refused", start, start);
        outage.over();
        for seconds in [1, 2, 3, 4] {
            let begun = start + Duration::from_secs(seconds);
            outage.goes_on("refused", begun, begun);
        }
        outage.over();
        outage.over();
        assert_eq!(
            *said.borrow(),
            ["coordinator unreachable (refused); trying again ...", "coordinator reachable again"]
        );
        // One try that took too long is enough.
        outage.goes_on("slow", start, start + QUIET);
        assert_eq!(said.borrow().len(), 3);
    }
}
