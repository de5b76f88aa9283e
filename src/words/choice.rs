//! Enumerations whose values have words: declared once, in the room that uses them; the case file names them
//! by these words.

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
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$inner:meta])* $variant:ident = $text:literal, $about:expr;)+ }) => {
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

/// Lets `Option<$name>` be chosen by words too: those of the enumeration, and first the word for none of
/// them.
macro_rules! choices_or_none {
    ($name:ident, $text:literal, $about:literal) => {
        impl $crate::words::Choose for Option<$name> {
            const ALL: &'static [Self] = &{
                let known = <$name as $crate::words::Choose>::ALL;
                let mut all = [None; <$name as $crate::words::Choose>::ALL.len() + 1];
                let mut place = 0;
                while place < known.len() {
                    all[place + 1] = Some(known[place]);
                    place += 1;
                }
                all
            };
            const CHOICES: &'static [$crate::words::Choice] = &{
                let known = <$name as $crate::words::Choose>::CHOICES;
                let none = $crate::words::Choice { name: $text, about: $about };
                let mut all = [none; <$name as $crate::words::Choose>::CHOICES.len() + 1];
                let mut place = 0;
                while place < known.len() {
                    all[place + 1] = known[place];
                    place += 1;
                }
                all
            };
        }
    };
}
pub(crate) use choices_or_none;

#[cfg(test)]
mod tests {
    use super::*;

    choices! {
        /// For the test.
        pub enum Colour {
            Red = "red", "as a brick";
            Blue = "blue", "as the sky";
        }
    }
    choices_or_none!(Colour, "none", "not coloured");

    #[test]
    fn words_stand_beside_their_values() {
        assert_eq!((Colour::Blue.name(), Colour::ALL), ("blue", &[Colour::Red, Colour::Blue][..]));
        let words: Vec<&str> = Option::<Colour>::CHOICES.iter().map(|choice| choice.name).collect();
        assert_eq!(words, ["none", "red", "blue"]);
        assert_eq!(Option::<Colour>::ALL, [None, Some(Colour::Red), Some(Colour::Blue)]);
        assert_eq!(Option::<Colour>::CHOICES[2], Colour::CHOICES[1]);
    }
}
