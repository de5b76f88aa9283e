//! Mistakes in case files, and what is said about them.
