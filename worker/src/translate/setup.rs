//! Before the first step: data prepared by the master replica, read by all; the state restored or made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use coord_io::storage::Storage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::error::TrainError;
use super::estimate::{Estimate, Part};
use super::observer::Observer;
use super::settings::Settings;
use super::start::{Beginning, Finder};
use super::state::State;
use crate::checkpoint::Checkpoints;
use crate::collective::Collective;
use crate::data::buckets::TRANSLATE_BUCKETS;
use crate::data::error::DataError;
use crate::data::files::Files;
use crate::data::pairs::{Pairs, read_pairs};
use crate::data::prepare::{PrepareSettings, Prepared, prepare};
use crate::files::StoredFiles;
use crate::memory;
use crate::model::translate::Translate;
use crate::train::tree::shares;

/// Where this process stands in the job.
#[derive(Debug, Clone)]
pub struct Context {
    pub job: String,
    /// The same over all generations of the job: see [`crate::checkpoint::Lineage`].
    pub run: String,
    pub generation: u64,
    pub micro_batches: u32,
    pub threads: usize,
    /// Start anew where another run's checkpoints lie.
    pub fresh: bool,
    pub numeric_class: String,
    /// Highest step that the coordinator has recorded; nothing without a coordinator.
    pub recorded: Option<Arc<AtomicU64>>,
}

/// All that the step loop needs.
pub struct Ready {
    pub model: Translate,
    pub pairs: Pairs,
    pub dev: Pairs,
    pub state: State,
    pub storage: Storage,
    pub lineage: String,
    /// What every manifest of this run says about its settings.
    pub settings_saved: Map<String, Value>,
}

/// The master's word to all ranks.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    data: Prepared,
    beginning: Beginning,
}

pub fn set_up(
    settings: &Settings,
    context: &Context,
    runtime: &Handle,
    collective: &mut dyn Collective,
    observer: &dyn Observer,
) -> Result<Ready, TrainError> {
    let master = collective.rank() == 0;
    let files = StoredFiles::new(runtime.clone());
    let storage = Storage::open(&settings.train_dir)?;
    let model = Translate::new(settings.model.clone());
    let part = part(settings, context, collective);
    Estimate::of(&model, &part).check(&model, settings.batch_size, memory::available())?;
    let planned = if master {
        observer.stage("preparing data");
        Some(plan(settings, context, runtime, &files, &storage, &model, observer))
    } else {
        observer.stage("waiting for the master replica to prepare the data");
        None
    };
    let plan = share_plan(collective, planned)?;
    observer.stage("reading data");
    if master {
        observer.say(&format!("Creating {} layers of {} units.", settings.model.layers, settings.model.size));
        plan.beginning.lines.iter().for_each(|line| observer.say(line));
        if plan.beginning.manifest.is_none() {
            observer.say("Created model with fresh parameters.");
        }
        let limit = settings.train_lines_max;
        observer.say(&format!("Reading development and training data (limit: {limit})."));
    }
    let mut say = |line: &str| {
        if master {
            observer.say(line);
        }
    };
    let dev = read_pairs(&files, &plan.data.dev, &TRANSLATE_BUCKETS, 0, &mut say)?;
    let pairs = read_pairs(&files, &plan.data.train, &TRANSLATE_BUCKETS, settings.train_lines_max, &mut say)?;
    let pairs = pairs.for_training(&plan.data.train)?;
    let state = state(settings, &model, runtime, &storage, &plan.beginning)?;
    agree(collective, &state)?;
    let mut settings_saved = settings.fixed(&plan.data, context.micro_batches);
    settings_saved.extend(settings.changeable());
    settings_saved.extend(vocabulary_urls(&plan.data));
    Ok(Ready { model, pairs, dev, state, storage, lineage: plan.beginning.lineage, settings_saved })
}

fn part(settings: &Settings, context: &Context, collective: &dyn Collective) -> Part {
    let micro_batches = context.micro_batches;
    let owned = shares(micro_batches, collective.world_size())[collective.rank() as usize].clone();
    Part { batch_size: settings.batch_size, micro_batches, owned, master: collective.rank() == 0 }
}

/// Every check that can be made without training, cheapest first; nothing is written before the files are known to be
/// there.
fn plan(
    settings: &Settings,
    context: &Context,
    runtime: &Handle,
    files: &StoredFiles,
    storage: &Storage,
    model: &Translate,
    observer: &dyn Observer,
) -> Result<Plan, TrainError> {
    let sides = [&settings.data.source, &settings.data.target];
    for file in sides.iter().flat_map(|side| [&side.train, &side.dev]) {
        if files.size(&file.url).map_err(DataError::from)?.is_none() {
            return Err(DataError::Missing { flag: file.flag.clone(), url: file.url.clone() }.into());
        }
    }
    runtime.block_on(storage.probe())?;
    let data_settings = PrepareSettings { memory_limit: memory::available(), ..settings.data.clone() };
    let data = prepare(files, &data_settings, &mut |line: &str| {
        observer.say(line);
        if !line.starts_with("warning: ") {
            observer.stage(line.trim());
        }
    })?;
    let finder = Finder {
        settings,
        fixed: &settings.fixed(&data, context.micro_batches),
        model,
        job: &context.job,
        run: &context.run,
        numeric_class: &context.numeric_class,
        fresh: context.fresh,
    };
    let beginning = finder.find(runtime, storage)?;
    Ok(Plan { data, beginning })
}

/// Gives the master's plan, or its failure, to all ranks.
fn share_plan(collective: &mut dyn Collective, planned: Option<Result<Plan, TrainError>>) -> Result<Plan, TrainError> {
    let bytes = match &planned {
        Some(Ok(plan)) => serde_json::to_vec(&Ok::<&Plan, String>(plan)).expect("a plan holds only plain values"),
        Some(Err(error)) => {
            serde_json::to_vec(&Err::<Plan, String>(error.to_string())).expect("a string is valid JSON")
        }
        None => Vec::new(),
    };
    let sent = collective.broadcast(0, bytes);
    if let Some(planned) = planned {
        // The master's own error says more than the news that others have gone because of it.
        let plan = planned?;
        sent?;
        return Ok(plan);
    }
    let plan: Result<Plan, String> = serde_json::from_slice(&sent?)
        .map_err(|_| crate::collective::CollectiveError::Malformed { rank: 0, what: "plan" })?;
    plan.map_err(|message| TrainError::Master { message })
}

fn state(
    settings: &Settings,
    model: &Translate,
    runtime: &Handle,
    storage: &Storage,
    beginning: &Beginning,
) -> Result<State, TrainError> {
    let Some(name) = &beginning.manifest else {
        return Ok(State::fresh(model.initial(settings.seed), settings.learning_rate));
    };
    let found = runtime.block_on(Checkpoints::new(storage.clone()).load(name))?;
    let mut state = State::restore(model.layout(), &found.tensors)
        .map_err(|why| crate::checkpoint::CheckpointError::Invalid { url: found.manifest_url.clone(), why })?;
    if let Some(rate) = beginning.new_rate {
        state.schedule.rate = rate;
    }
    Ok(state)
}

/// All ranks begin with the same state, or none begins.
fn agree(collective: &mut dyn Collective, state: &State) -> Result<(), TrainError> {
    let digests = collective.gather(state.digest().into_bytes())?;
    if digests.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(());
    }
    let digests = digests.iter().map(|digest| String::from_utf8_lossy(digest).into_owned()).collect();
    Err(TrainError::RanksDisagree { step: state.step, digests })
}

/// Where decoding finds the words.
fn vocabulary_urls(data: &Prepared) -> Map<String, Value> {
    let urls = BTreeMap::from([
        ("source_vocabulary_url".to_owned(), Value::from(data.source_vocabulary.url.clone())),
        ("target_vocabulary_url".to_owned(), Value::from(data.target_vocabulary.url.clone())),
    ]);
    urls.into_iter().collect()
}
