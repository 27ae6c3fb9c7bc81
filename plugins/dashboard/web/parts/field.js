import { useId } from "preact/hooks"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "./button.js"
import { explain } from "./explain.js"
import { useForm } from "./form.js"

/** A labelled input with its hint and the API's error about it. `as`: input, select, textarea; `problem`: for a field outside a form. */
export const Field = ({ label, hint, name, as = "input", problem: given, children, ...rest }) => {
  const id = useId()
  const form = useForm()
  const { t } = useText()
  const problem = given ?? form.problem
  const refusal = name && problem?.param === name ? explain(t, problem) : undefined
  const described = [hint && `${id}-hint`, refusal && `${id}-refusal`].filter(Boolean).join(" ")
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <${as} id=${id} name=${name} aria-invalid=${refusal ? "true" : undefined} aria-describedby=${described || undefined} ...${rest}>${children}<//>
    ${hint && html`<p id=${`${id}-hint`} class="hint">${hint}</p>`}
    ${refusal && html`<p id=${`${id}-refusal`} class="refusal" role="alert">${refusal}</p>`}
  </div>`
}

export const Check = ({ label, hint, ...rest }) => {
  const id = useId()
  return html`<div class="check">
    <input type="checkbox" id=${id} aria-describedby=${hint ? `${id}-hint` : undefined} ...${rest} />
    <label for=${id}>${label}</label>
    ${hint && html`<p id=${`${id}-hint`} class="hint">${hint}</p>`}
  </div>`
}

/** The submit button of the surrounding form. */
export const Submit = ({ children, look = "main", onClick }) => {
  const { busy } = useForm()
  return html`<${Button} type="submit" look=${look} busy=${busy} onClick=${onClick}>${children}<//>`
}
