import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { count, exactMoney, money } from "../format.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { AccessFacts, AccessFields, accessOf } from "./key-access.js"
import { LimitFields, limitsOf, NameField } from "./key-form.js"

const Spent = ({ spent, cap }) => {
  const { t, language } = useText()
  const exact = exactMoney(spent, language)
  const values = { spent: money(spent, language), cap: exactMoney(cap ?? 0, language) }
  if (!cap) return html`<p title=${exact}>${t("key.spent.uncapped", values)}</p>`
  const text = t("key.spent", values)
  const look = spent >= cap ? "full" : spent >= 0.8 * cap ? "high" : ""
  return html`<div><p title=${exact}>${text}</p><progress class=${look} max=${cap} value=${Math.min(spent, cap)} aria-label=${text}></progress></div>`
}

const Limits = ({ limits }) => {
  const { t, language } = useText()
  return html`<dl class="facts">
    ${["rpm", "rpd", "concurrency", "body_mb"].map((name) => html`<div key=${name}><dt>${t(`limit.${name}`)}</dt><dd>${count(limits[name], language)}</dd></div>`)}
  </dl>`
}

const Edit = ({ apiKey, models, scopes, onSaved, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const save = async (values) =>
    onSaved(
      await api.patch(`/dashboard/keys/${apiKey.id}`, {
        name: values.name,
        limits: limitsOf(values),
        ...accessOf(values, scopes, apiKey),
      }),
    )
  const actions = html`<${Submit}>${t("save")}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<${Form} onSubmit=${save} label=${t("key.edit", { name: apiKey.name })} actions=${actions}>
    <${NameField} value=${apiKey.name} />
    <${LimitFields} limits=${apiKey.limits} />
    <${AccessFields} apiKey=${apiKey} models=${models} scopes=${scopes} />
  <//>`
}

const Revoke = ({ apiKey, onRevoked, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const revoke = async () => onRevoked(await api.remove(`/dashboard/keys/${apiKey.id}`))
  const actions = html`<${Submit} look="danger">${t("key.revoke")}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<${Dialog} title=${t("key.revoke.ask", { name: apiKey.name })} onClose=${onClose}>
    <p>${t("key.revoke.what", { prefix: apiKey.prefix })}</p>
    <${Form} onSubmit=${revoke} actions=${actions} />
  <//>`
}

/** `apiKey`: the API's key, as `key` is reserved by preact. */
export const KeyCard = ({ apiKey, models, scopes, onChange }) => {
  const { t } = useText()
  const [doing, set] = useState("nothing")
  const done = (changed) => {
    set("nothing")
    onChange(changed)
  }
  const isRevoked = apiKey.revoked_at !== null
  const stop = () => set("nothing")
  return html`<article class=${`card key ${isRevoked ? "revoked" : ""}`} aria-label=${apiKey.name}>
    <div class="head">
      <h2>${apiKey.name}</h2>
      <span class=${`badge ${apiKey.test ? "test" : "live"}`}>${t(apiKey.test ? "key.kind.test" : "key.kind.live")}</span>
      ${isRevoked && html`<span class="badge failed">${t("key.revoked")}</span>`}
    </div>
    <p class="quiet"><code>${apiKey.prefix}…</code> · ${t("key.created")} <${Moment} at=${apiKey.created_at} /> · ${t("key.lastUsed")} <${Moment} at=${apiKey.last_used_at} never=${t("never")} />
      ${isRevoked && html` · ${t("key.revoked")} <${Moment} at=${apiKey.revoked_at} />`}
      ${apiKey.expires_at && html` · ${t("key.expires")} <${Moment} at=${apiKey.expires_at} />`}</p>
    <${Spent} spent=${apiKey.spent_this_month_idr} cap=${apiKey.limits.monthly_cap_idr} />
    ${doing === "editing" ? html`<${Edit} apiKey=${apiKey} models=${models} scopes=${scopes} onSaved=${done} onClose=${stop} />` : html`<${Limits} limits=${apiKey.limits} /><${AccessFacts} apiKey=${apiKey} />`}
    ${
      !isRevoked &&
      doing !== "editing" &&
      html`<div class="actions">
      <${Button} onClick=${() => set("editing")}>${t("edit")}<//>
      <${Button} look="danger" onClick=${() => set("revoking")}>${t("key.revoke")}<//>
    </div>`
    }
    ${doing === "revoking" && html`<${Revoke} apiKey=${apiKey} onRevoked=${done} onClose=${stop} />`}
  </article>`
}
