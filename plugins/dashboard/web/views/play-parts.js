import { useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Field } from "../parts/field.js"

export const apiBase = () => `${location.origin}/v1`

/** The API names the place inside a field (`documents[3]`); what is on the page is the field. */
export const ofWholeField = (error) => {
  const [field] = /^\w+/.exec(error.param ?? "") ?? []
  if (!(error instanceof Problem) || field === error.param) return error
  return new Problem({ ...error, message: error.message, param: field })
}

const unreadable =
  ({ status }) =>
  () => {
    throw new Problem({ status, code: "unreadable" })
  }

/** Returns `call(path, what)`, which calls `/v1` and returns the reply's JSON with the `callId`. */
export const useCall = () => {
  const { v1, account } = useApp()
  return async (path, what) => {
    try {
      const reply = await v1.send("POST", path, what)
      const json = await reply.json().catch(unreadable(reply))
      return { ...json, callId: reply.headers.get("x-call-id") }
    } finally {
      account.get()?.refresh()
    }
  }
}

/**
 * The answer that is shown, `{ sent, reply }`, until the next one comes. `ask(sent, calling)` refuses with a problem of a field;
 * `place(problem)` may name another field first.
 */
export const useAnswer = () => {
  const [answer, show] = useState(undefined)
  const ask = async (sent, calling, place = (problem) => problem) => {
    try {
      show({ sent, reply: await calling })
    } catch (error) {
      throw ofWholeField(place(error))
    }
  }
  return { answer, ask }
}

export const ModelField = ({ models, ...rest }) => {
  const { t } = useText()
  return html`<${Field} label=${t("model")} as="select" name="model" required ...${rest}>${models.map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}<//>`
}

/** What a call used and cost, said to screen readers when it comes. */
export const Paid = ({ used, cost, callId }) =>
  html`<div role="status">${used && html`<p class="bill quiet">${used} · <b><${Amount} value=${cost} /></b>${callId && html` · <code>${callId}</code>`}</p>`}</div>`

/** A call as programs; `write` returns them by their languages. */
export const Code = ({ write }) => {
  const { t } = useText()
  const [isOpen, setOpen] = useState(false)
  const programs = isOpen ? Object.entries(write()) : []
  return html`<details onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${t("play.code")}</summary>
    ${programs.map(([name, text]) => html`<p class="quiet" key=${`${name} name`}>${name}</p><pre class="snippet" key=${name} tabindex="0" role="region" aria-label=${name}><code>${text}</code></pre>`)}
  </details>`
}
