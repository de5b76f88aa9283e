//! Case files: every shipped one is right, mistakes are told with line and key, and no text makes the reader panic or hang.

mod case_files {
    pub mod fuzz;
    pub mod machines;
    pub mod mistakes;
    pub mod shipped;
    pub mod values;
}
