import { createContext } from "preact"
import { useContext, useRef, useState } from "preact/hooks"
import { html } from "../html.js"
import { ProblemNotice } from "./notice.js"

const FormContext = createContext({})

export const useForm = () => useContext(FormContext)

/** An error that did not come from the API is a bug of the page: it must not be swallowed. */
const isProblem = (error) => typeof error?.code === "string"

/**
 * A field's `name` is the API's `param`: an error with it is shown beside the field, any other above the buttons.
 * `onSubmit` gets the fields' texts by name. `look`: inline puts the button beside the only field.
 */
export const Form = ({ onSubmit, label, look, children, actions }) => {
  const form = useRef()
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState(undefined)

  const submit = async (event) => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setProblem(undefined)
    try {
      await onSubmit(Object.fromEntries(new FormData(form.current)), form.current)
    } catch (error) {
      if (!isProblem(error)) throw error
      setProblem(error)
      form.current?.elements.namedItem(error.param ?? "")?.focus?.()
    } finally {
      setBusy(false)
    }
  }
  const isBeside = problem?.param && form.current?.elements.namedItem(problem.param)
  return html`<form ref=${form} class=${look ? `form ${look}` : "form"} aria-label=${label} onSubmit=${submit}>
    <${FormContext.Provider} value=${{ problem, busy }}>
      ${children}
      ${problem && !isBeside && html`<${ProblemNotice} problem=${problem} />`}
      <div class="actions">${actions}</div>
    <//>
  </form>`
}
