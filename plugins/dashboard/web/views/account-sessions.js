import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Ask } from "../parts/ask.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useLoad } from "../parts/load.js"
import { Loading, Notice, ProblemNotice } from "../parts/notice.js"
import { useStore } from "../store.js"

const shownFirst = 8

const nameOf = (t, { browser, os }) => {
  if (browser && os) return t("sessions.on", { browser, os })
  return browser ?? os ?? t("sessions.unknown")
}

const Session = ({ one, onEnd }) => {
  const { t } = useText()
  const name = nameOf(t, one)
  return html`<li>
    <div>
      <p><b>${name}</b>${one.current && html` <span class="badge live">${t("sessions.current")}</span>`}</p>
      <p class="quiet">
        ${one.address && html`<code>${one.address}</code> · `}
        <span>${t("sessions.began")} <${Moment} at=${one.created_at} /> · </span>
        <span>${t("sessions.seen")} <${Moment} at=${one.last_seen_at} /></span>
      </p>
    </div>
    ${!one.current && html`<${Button} aria-label=${t("sessions.end.of", { name })} onClick=${() => onEnd(one)}>${t("sessions.end")}<//>`}
  </li>`
}

/** The one that asks is the first, the others by when they were seen. */
const List = ({ sessions, onEnd }) => {
  const { t } = useText()
  const [isWhole, showAll] = useState(false)
  const sorted = sessions.toSorted((a, b) => Number(b.current) - Number(a.current))
  const shown = isWhole ? sorted : sorted.slice(0, shownFirst)
  return html`
    <ul class="sessions">${shown.map((one) => html`<${Session} key=${one.id} one=${one} onEnd=${onEnd} />`)}</ul>
    ${sorted.length > shown.length && html`<div class="actions"><${Button} onClick=${() => showAll(true)}>${t("more")}<//></div>`}
  `
}

const EndOthers = ({ onDone }) => {
  const { t } = useText()
  const { api, session } = useApp()
  const end = async (values, form) => {
    session.begin(await api.post("/dashboard/end-sessions", values))
    form.reset()
    onDone(t("account.sessions.done"))
  }
  return html`<${Form} onSubmit=${end} look="inline" label=${t("account.sessions")} actions=${html`<${Submit}>${t("account.sessions.end")}<//>`}>
    <${Field} label=${t("password.current")} name="current_password" type="password" autocomplete="current-password" required />
  <//>`
}

/** The open sessions of the account; one of them ends, or all others. */
export const Sessions = () => {
  const { t } = useText()
  const { api, session } = useApp()
  const { token } = useStore(session)
  const [asked, ask] = useState(undefined)
  const [said, say] = useState(undefined)
  const { data, problem, reload } = useLoad(() => api.get("/dashboard/sessions"), [token])
  const end = async () => {
    const name = nameOf(t, asked)
    await api.remove(`/dashboard/sessions/${asked.id}`)
    ask(undefined)
    say(t("sessions.ended", { name }))
    reload()
  }
  return html`<section class="card whole" aria-label=${t("account.sessions")}>
    <h2>${t("account.sessions")}</h2>
    <p class="quiet">${t("account.sessions.what")}</p>
    ${said && html`<${Notice} kind="good">${said}<//>`}
    <${ProblemNotice} problem=${problem} />
    ${data ? html`<${List} sessions=${data.data} onEnd=${ask} />` : !problem && html`<${Loading} />`}
    <${EndOthers} onDone=${say} />
    ${asked && html`<${Ask} title=${t("sessions.ask", { name: nameOf(t, asked) })} what=${t("sessions.what")} yes=${t("sessions.end")} act=${end} onClose=${() => ask(undefined)} />`}
  </section>`
}
