import { ChatTemplate } from "../chat-template.ts"
import { parseAsWritten } from "../written-number.ts"

const values =
  '{"t": "Hello wORLD foo", "e": "a😀b😀 é", "n": 5, "f": 2.5, "neg": -7, "l": ["b", "a", "C", "a"], "nums": [3, 1, 2], "fl": [1.5, 2], "d": {"b": 1, "a": {"x": 2}}, "objs": [{"k": "x", "v": 2, "g": "p"}, {"k": "y", "v": 1, "g": "q"}, {"k": "z", "v": 3, "g": "p"}], "empty": [], "es": "", "ml": "a\\n b\\n\\n c\\n", "ws": "  pad  ", "none": null, "tr": true, "html": "<b>&\'\\"", "msgs": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]}'

/** Renders a template of variables of all kinds, numbers as they are written in JSON. */
export const renderedWith = (source: string): string =>
  new ChatTemplate(source).render(parseAsWritten(values) as Readonly<Record<string, unknown>>)
