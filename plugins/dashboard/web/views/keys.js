import { useEffect, useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Copy } from "../parts/copy.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useIdempotentSend } from "../parts/idempotent-send.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { Notice, ProblemNotice } from "../parts/notice.js"
import { AccessFields, accessOf, useScopes } from "./key-access.js"
import { KeyCard } from "./key-card.js"
import { LimitFields, limitsOf, NameField, TestCheck } from "./key-form.js"
import { Snippets } from "./key-snippets.js"

const NewKey = ({ models, scopes, onMade, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const sendOnce = useIdempotentSend()
  const make = async (values) => {
    const body = {
      name: values.name,
      limits: limitsOf(values),
      ...(values.test && { test: true }),
      ...accessOf(values, scopes),
    }
    onMade(
      await sendOnce((idempotencyKey) => api.post("/dashboard/keys", body, { idempotencyKey })),
    )
  }
  const actions = html`<${Submit}>${t("key.create")}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<section class="card" aria-labelledby="new-key">
    <h2 id="new-key">${t("key.new")}</h2>
    <${Form} onSubmit=${make} label=${t("key.new")} actions=${actions}>
      <${NameField} />
      <${TestCheck} />
      <fieldset><legend>${t("key.limits")}</legend><${LimitFields} /></fieldset>
      <${AccessFields} models=${models} scopes=${scopes} />
    <//>
  </section>`
}

const MadeKey = ({ made, models, onClose }) => {
  const { t } = useText()
  const heading = useRef()
  useEffect(() => heading.current.focus(), [])
  return html`<section class="card made" aria-labelledby="made-key">
    <h2 id="made-key" ref=${heading} tabindex="-1">${t("key.made", { name: made.name })}</h2>
    <${Notice} kind="warn">${t("key.once")}<//>
    <${Copy} label=${t("key.text")} text=${made.key} />
    <${Snippets} apiKey=${made} models=${models} />
    <div class="actions"><${Button} onClick=${onClose}>${t("key.stored")}<//></div>
  </section>`
}

export const Keys = ({ models: { models } }) => {
  const { t } = useText()
  const list = useList("/dashboard/keys")
  const { scopes, problem } = useScopes()
  const [isMaking, setMaking] = useState(false)
  const [made, show] = useState(undefined)
  const take = ({ key, ...rest }) => {
    setMaking(false)
    show({ ...rest, key })
    list.put(rest)
  }
  return html`
    <div class="head"><h1>${t("nav.keys")}</h1>${!isMaking && html`<${Button} look="main" onClick=${() => setMaking(true)}>${t("key.new")}<//>`}</div>
    <${ProblemNotice} problem=${problem} />
    ${made && html`<${MadeKey} key=${made.key} made=${made} models=${models} onClose=${() => show(undefined)} />`}
    ${isMaking && html`<${NewKey} models=${models} scopes=${scopes} onMade=${take} onClose=${() => setMaking(false)} />`}
    ${list.items?.length === 0 && html`<p class="quiet">${t("keys.none")}</p>`}
    <div class="cards">${list.items?.map((key) => html`<${KeyCard} key=${key.id} apiKey=${key} models=${models} scopes=${scopes} onChange=${list.put} />`)}</div>
    <${More} list=${list} />
  `
}
