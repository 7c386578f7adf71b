//! The pure state machine of the coordinator.
