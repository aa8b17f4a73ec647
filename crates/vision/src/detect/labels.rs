//! Names of classes: out of a model's metadata, a file's lines, or one of the lists known here.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Names of classes by their index. Not every class needs one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<usize, String>);

/// The 80 classes of COCO, in the order that YOLO models have them.
const COCO: &str = "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,\
parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,\
frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,\
wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,\
couch,potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,\
refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush";
const CDLA: &str = "text,title,figure,figure_caption,table,table_caption,header,footer,reference,equation";
const DOCLAYNET: &str = "Caption,Footnote,Formula,List-item,Page-footer,Page-header,Picture,Section-header,Table,Text,\
Title";
const DOCSTRUCTBENCH: &str = "title,plain text,abandon,figure,figure_caption,table,table_caption,table_footnote,\
isolate_formula,formula_caption";
const PUBLAYNET: &str = "Text,Title,List,Table,Figure";

/// Names that [`Labels::known`] knows.
const KNOWN: [(&str, &str); 5] = [
    ("coco", COCO),
    ("cdla", CDLA),
    ("doclaynet", DOCLAYNET),
    ("docstructbench", DOCSTRUCTBENCH),
    ("publaynet", PUBLAYNET),
];

impl Labels {
    /// One of the lists known here: `coco`, `cdla`, `doclaynet`, `docstructbench`, `publaynet`.
    pub fn known(name: &str) -> Option<Self> {
        let (_, list) = KNOWN.iter().find(|(known, _)| *known == name)?;
        Some(list.split(',').map(str::to_owned).collect())
    }

    /// One name a line, as in a labels file; empty lines at the end are left out.
    pub fn from_lines(text: &str) -> Self {
        text.trim_end().lines().map(|line| line.trim().to_owned()).collect()
    }

    /// The names that a model carries: under `names` as ultralytics writes them (a Python dictionary or list), under
    /// `character` as lines. `get` looks a key of the metadata up.
    pub fn from_metadata<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        if let Some(labels) = get("names").and_then(Self::from_python) {
            return Some(labels);
        }
        get("character").map(Self::from_lines).filter(|labels| !labels.0.is_empty())
    }

    /// A Python dictionary of whole numbers to texts, or list of texts, as source text. Nothing is evaluated.
    pub fn from_python(text: &str) -> Option<Self> {
        let mut labels = BTreeMap::new();
        let mut rest = text.trim();
        let closing = match rest.chars().next()? {
            '{' => '}',
            '[' => ']',
            '(' => ')',
            _ => return None,
        };
        rest = rest[1..].trim_start();
        while !rest.starts_with(closing) {
            let index = if closing == '}' {
                let (key, after) = rest.split_once(':')?;
                rest = after.trim_start();
                key.trim().trim_matches(['\'', '"']).parse().ok()?
            } else {
                labels.len()
            };
            let (name, after) = quoted(rest)?;
            labels.insert(index, name);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(after) => rest = after.trim_start(),
                None if rest.starts_with(closing) => {}
                None => return None,
            }
        }
        (!labels.is_empty()).then_some(Self(labels))
    }

    /// The name of a class, or its number where it has none.
    pub fn name(&self, class: usize) -> Cow<'_, str> {
        self.0.get(&class).map_or_else(|| Cow::Owned(class.to_string()), |name| Cow::Borrowed(name.as_str()))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<String> for Labels {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().enumerate().collect())
    }
}

/// A Python text literal at the start, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.char_indices();
    let (_, quote) = characters.next().filter(|(_, quote)| matches!(quote, '\'' | '"'))?;
    let mut name = String::new();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => match characters.next()?.1 {
                'n' => name.push('\n'),
                't' => name.push('\t'),
                other => name.push(other),
            },
            _ if character == quote => return Some((name, &text[place + 1..])),
            _ => name.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_python_texts_in_any_order() {
        let labels = Labels::from_python("{0: 'Caption', 10: \"Writer's title\", 1 : 'a\\'b', }").unwrap();
        assert_eq!(
            (labels.len(), labels.name(10), labels.name(1)),
            (3, "Writer's title".into(), "a'b".into())
        );
        assert_eq!(labels.name(5), "5");
        assert_eq!(Labels::from_python("['x', 'y']").unwrap().name(1), "y");
        assert_eq!(Labels::from_python("{\"0\": \"json\"}").unwrap().name(0), "json");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "{",
            "{}",
            "{0 'a'}",
            "{0: a}",
            "{0: 'a'",
            "{0: 'a' 1: 'b'}",
            "{-1: 'a'}",
            "__import__('os')",
            "['\\",
        ] {
            assert_eq!(Labels::from_python(text), None, "{text}");
        }
    }

    #[test]
    fn lists_known_here_have_their_lengths() {
        let lengths =
            [("coco", 80), ("cdla", 10), ("doclaynet", 11), ("docstructbench", 10), ("publaynet", 5)];
        for (name, length) in lengths {
            assert_eq!(Labels::known(name).unwrap().len(), length, "{name}");
        }
        assert_eq!(Labels::known("coco").unwrap().name(79), "toothbrush");
        assert!(Labels::known("imagenet").is_none());
    }

    #[test]
    fn metadata_is_looked_through() {
        let yolo = |key: &str| (key == "names").then_some("{0: 'cat'}");
        assert_eq!(Labels::from_metadata(yolo).unwrap().name(0), "cat");
        let paddle = |key: &str| (key == "character").then_some("text\ntitle\n");
        assert_eq!(Labels::from_metadata(paddle).unwrap().len(), 2);
        assert!(Labels::from_metadata(|_| None).is_none());
    }
}
