//! Models with explicit backward passes; the plain reference of each fast kernel beside it.
