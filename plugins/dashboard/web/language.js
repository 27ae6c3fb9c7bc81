import { makeStore } from "./store.js"
import { en } from "./words/en.js"
import { id } from "./words/id.js"

const words = { en, id }

export const languageNames = { en: "English", id: "Indonesia" }

/** The chosen language, or else the one that the browser prefers. */
export const makeLanguage = ({ persisted, preferred }) => {
  const spoken = preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in words)
  const kept = persisted.read()
  const store = makeStore(kept in words ? kept : (spoken ?? "en"))
  return {
    ...store,
    choose: (language) => {
      persisted.write(language)
      store.set(language)
    },
  }
}

/** Returns whether there are words for the key. */
export const hasWords = (key) => key in words.en

/** Replaces each `{name}` in the text by its value. */
export const translate = (language, key, values = {}) =>
  (words[language][key] ?? words.en[key] ?? key).replace(
    /\{(\w+)\}/g,
    (_, name) => values[name] ?? "",
  )
