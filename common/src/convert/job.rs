//! Specs, devices and phases on the wire.

use coord_proto::v1;

use super::ConvertError;
use crate::ids::JobId;
use crate::job::{GRACE_DEFAULT, JobSettings, JobSpec, MICRO_BATCHES_DEFAULT, RUNNING_DEFAULT};
use crate::phase::Phase;
use crate::resources::Device;
use crate::time::Millis;

pub fn device_from_wire(value: i32) -> Result<Device, ConvertError> {
    match v1::Device::try_from(value) {
        Ok(v1::Device::Cpu) => Ok(Device::Cpu),
        Ok(v1::Device::Cuda) => Ok(Device::Cuda),
        Ok(v1::Device::Unspecified) | Err(_) => Err(ConvertError::Unknown { field: "device", got: value.to_string() }),
    }
}

pub fn device_to_wire(device: Device) -> v1::Device {
    match device {
        Device::Cpu => v1::Device::Cpu,
        Device::Cuda => v1::Device::Cuda,
    }
}

pub fn phase_from_wire(value: i32) -> Result<Phase, ConvertError> {
    match v1::Phase::try_from(value) {
        Ok(v1::Phase::Queued) => Ok(Phase::Queued),
        Ok(v1::Phase::Preparing) => Ok(Phase::Preparing),
        Ok(v1::Phase::Running) => Ok(Phase::Running),
        Ok(v1::Phase::Cancelling) => Ok(Phase::Cancelling),
        Ok(v1::Phase::Succeeded) => Ok(Phase::Succeeded),
        Ok(v1::Phase::Failed) => Ok(Phase::Failed),
        Ok(v1::Phase::Cancelled) => Ok(Phase::Cancelled),
        Ok(v1::Phase::Unspecified) | Err(_) => Err(ConvertError::Unknown { field: "phase", got: value.to_string() }),
    }
}

pub fn phase_to_wire(phase: Phase) -> v1::Phase {
    match phase {
        Phase::Queued => v1::Phase::Queued,
        Phase::Preparing => v1::Phase::Preparing,
        Phase::Running => v1::Phase::Running,
        Phase::Cancelling => v1::Phase::Cancelling,
        Phase::Succeeded => v1::Phase::Succeeded,
        Phase::Failed => v1::Phase::Failed,
        Phase::Cancelled => v1::Phase::Cancelled,
    }
}

/// Zero means the default where the message says so, and for micro-batches and slots per worker, which cannot be zero.
pub fn spec_from_wire(wire: &v1::JobSpec) -> Result<JobSpec, ConvertError> {
    let settings = JobSettings {
        job: JobId::parse(&wire.job)?,
        trainer: wire.trainer.clone(),
        args: wire.args.iter().map(|argument| argument.to_vec()).collect(),
        workers: wire.workers_min..=wire.workers_max,
        slots_per_worker: wire.slots_per_worker.max(1),
        cpus: (wire.cpus != 0).then_some(wire.cpus),
        device: device_from_wire(wire.device)?,
        micro_batches: or_default(wire.micro_batches, MICRO_BATCHES_DEFAULT),
        job_dir: (!wire.job_dir.is_empty()).then(|| wire.job_dir.clone()),
        labels: wire.labels.clone(),
        priority: wire.priority,
        max_running: or_default(Millis::from_seconds(wire.max_running_seconds), RUNNING_DEFAULT),
        max_restarts: wire.max_restarts,
        fresh: wire.fresh,
        grace: or_default(Millis::from_seconds(wire.grace_seconds.into()), GRACE_DEFAULT),
    };
    Ok(JobSpec::new(settings)?)
}

pub fn spec_to_wire(spec: &JobSpec) -> v1::JobSpec {
    v1::JobSpec {
        job: spec.job.to_string(),
        trainer: spec.trainer.clone(),
        args: spec.args.iter().map(|argument| argument.clone().into()).collect(),
        workers_min: spec.workers_min(),
        workers_max: spec.workers_max(),
        slots_per_worker: spec.slots_per_worker,
        cpus: spec.cpus.unwrap_or(0),
        device: device_to_wire(spec.device).into(),
        micro_batches: spec.micro_batches,
        job_dir: spec.job_dir.clone().unwrap_or_default(),
        labels: spec.labels.clone(),
        priority: spec.priority,
        max_running_seconds: spec.max_running.seconds_rounded_up(),
        max_restarts: spec.max_restarts,
        fresh: spec.fresh,
        grace_seconds: u32::try_from(spec.grace.seconds_rounded_up()).expect("a spec's grace is at most an hour"),
    }
}

fn or_default<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() { default } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enum_that_says_nothing_is_an_error() {
        assert_eq!(device_from_wire(0).expect_err("unspecified").to_string(), "device has no known value, got 0");
        assert!(device_from_wire(99).is_err());
        assert!(phase_from_wire(0).is_err());
        for phase in Phase::ALL {
            assert_eq!(phase_from_wire(phase_to_wire(phase).into()), Ok(phase));
        }
    }

    #[test]
    fn a_spec_survives_the_wire_byte_for_byte() {
        let mut settings = JobSettings::new(JobId::parse("chat").expect("valid"), "translate");
        settings.args = vec![b"--name= x".to_vec(), Vec::new(), vec![0xff, 0x00]];
        settings.workers = 2..=4;
        settings.cpus = Some(3);
        settings.labels.insert("team".into(), "nlp".into());
        let spec = JobSpec::new(settings).expect("valid");
        assert_eq!(spec_from_wire(&spec_to_wire(&spec)), Ok(spec));
    }

    #[test]
    fn zeros_on_the_wire_mean_the_defaults() {
        let wire = v1::JobSpec {
            job: "chat".into(),
            trainer: "translate".into(),
            workers_min: 1,
            workers_max: 1,
            device: v1::Device::Cpu.into(),
            max_restarts: 3,
            ..v1::JobSpec::default()
        };
        let expected = JobSpec::new(JobSettings::new(JobId::parse("chat").expect("valid"), "translate"));
        assert_eq!(spec_from_wire(&wire), Ok(expected.expect("valid")));
    }
}
