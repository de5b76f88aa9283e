//! The house as docs/architecture.md describes it: which room uses which, and how large its pieces are.

mod rooms;
mod sizes;
mod source;
