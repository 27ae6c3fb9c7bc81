import { makeStore } from "./store.js"
import { en } from "./words/en.js"
import { id } from "./words/id.js"

const words = { en, id }

export const languageNames = { en: "English", id: "Indonesia" }

/** What was chosen before, or else what the browser prefers. */
export const makeLanguage = ({ drawer, preferred }) => {
  const spoken = preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in words)
  const kept = drawer.read()
  const store = makeStore(kept in words ? kept : (spoken ?? "en"))
  return {
    ...store,
    choose: (language) => {
      drawer.write(language)
      store.set(language)
    },
  }
}

/** `{name}` in a text is replaced by a value. */
export const translate = (language, key, values = {}) =>
  (words[language][key] ?? words.en[key] ?? key).replace(
    /\{(\w+)\}/g,
    (_, name) => values[name] ?? "",
  )
