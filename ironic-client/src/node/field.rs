//! The fields of a node that a request may ask for.

use crate::Feature;

/// A field of a [`Node`](crate::Node) that a request may ask for; the UUID always comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // named as the fields of `Node`
pub enum NodeField {
    Name,
    ProvisionState,
    TargetProvisionState,
    ProvisionUpdatedAt,
    InstanceUuid,
    PowerState,
    Maintenance,
    MaintenanceReason,
    Fault,
    LastError,
    Reservation,
    ResourceClass,
    Traits,
    Retired,
    Protected,
    ConductorGroup,
    Owner,
    Shard,
}

impl NodeField {
    /// All fields of [`Node`](crate::Node).
    pub const ALL: [Self; 18] = [
        Self::Name,
        Self::ProvisionState,
        Self::TargetProvisionState,
        Self::ProvisionUpdatedAt,
        Self::InstanceUuid,
        Self::PowerState,
        Self::Maintenance,
        Self::MaintenanceReason,
        Self::Fault,
        Self::LastError,
        Self::Reservation,
        Self::ResourceClass,
        Self::Traits,
        Self::Retired,
        Self::Protected,
        Self::ConductorGroup,
        Self::Owner,
        Self::Shard,
    ];

    /// Ironic's word for the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ProvisionState => "provision_state",
            Self::TargetProvisionState => "target_provision_state",
            Self::ProvisionUpdatedAt => "provision_updated_at",
            Self::InstanceUuid => "instance_uuid",
            Self::PowerState => "power_state",
            Self::Maintenance => "maintenance",
            Self::MaintenanceReason => "maintenance_reason",
            Self::Fault => "fault",
            Self::LastError => "last_error",
            Self::Reservation => "reservation",
            Self::ResourceClass => "resource_class",
            Self::Traits => "traits",
            Self::Retired => "retired",
            Self::Protected => "protected",
            Self::ConductorGroup => "conductor_group",
            Self::Owner => "owner",
            Self::Shard => "shard",
        }
    }

    /// What the microversion must give for this field; `None` where every supported one has it.
    pub fn feature(self) -> Option<Feature> {
        match self {
            Self::Fault => Some(Feature::Fault),
            Self::Retired => Some(Feature::Retired),
            Self::Protected => Some(Feature::Protected),
            Self::ConductorGroup => Some(Feature::ConductorGroup),
            Self::Owner => Some(Feature::Owner),
            Self::Shard => Some(Feature::Shard),
            _ => None,
        }
    }
}
