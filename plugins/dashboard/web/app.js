import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { translate } from "./language.js"
import { useStore } from "./store.js"

/** What all views share: `{ api, session, account, language, mailToken, models, nowMs }`, stores and functions. */
export const AppContext = createContext(undefined)

export const useApp = () => useContext(AppContext)

/** `t(key, values)` in the chosen language. */
export const useText = () => {
  const language = useStore(useApp().language)
  const t = (key, values) => translate(language, key, values)
  return { t, language }
}
