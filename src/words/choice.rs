//! Enumerations whose values have words: declared once, in the room that uses them; the case file names them by these words.

/// One of a list of words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub name: &'static str,
    pub about: &'static str,
}

/// An enumeration that a case file names by words; made by [`choices!`].
pub trait Choose: Copy + 'static {
    const ALL: &'static [Self];
    const CHOICES: &'static [Choice];
}

/// Declares an enumeration with the word and the meaning of each value, as case files name them.
macro_rules! choices {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$inner:meta])* $variant:ident = $text:literal, $about:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* #[doc = $about] $variant),+ }

        impl $crate::words::Choose for $name {
            const ALL: &'static [Self] = &[$($name::$variant),+];
            const CHOICES: &'static [$crate::words::Choice] =
                &[$($crate::words::Choice { name: $text, about: $about }),+];
        }

        impl $name {
            /// The word by which a case file names it.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }
    };
}
pub(crate) use choices;
