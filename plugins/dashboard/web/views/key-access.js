import { useApp, useText } from "../app.js"
import { dayText } from "../format.js"
import { html } from "../html.js"
import { hasWords } from "../language.js"
import { Check, Field } from "../parts/field.js"
import { useLoad } from "../parts/load.js"

const groupOf = (scope) => scope.split(".")[0]

const ticked = (values, prefix) =>
  Object.keys(values)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))

/** Returns the scopes that keys may have, as the server lists them: `{ scopes, problem }`. */
export const useScopes = () => {
  const { api } = useApp()
  const { data, problem } = useLoad(() => api.get("/dashboard/scopes"), [])
  return { scopes: data?.data ?? [], problem }
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other)

/**
 * Converts the form's values to the API's `scopes`, `models` and `expires_at`. Nothing ticked is everything. Of a key that is
 * there (`apiKey`) only what was changed: it may have scopes that are a part of a group.
 */
export const accessOf = (values, listed, apiKey) => {
  const scopes = withOwn(listed, apiKey)
  const groups = ticked(values, "scope:")
  const models = ticked(values, "model:")
  const expires = values.expires_at
    ? Math.floor(Date.parse(`${values.expires_at}T23:59:59Z`) / 1000)
    : null
  if (!apiKey)
    return {
      ...(groups.length > 0 && { scopes: scopes.filter((one) => groups.includes(groupOf(one))) }),
      ...(models.length > 0 && { models }),
      ...(expires !== null && { expires_at: expires }),
    }
  const chosen = groups.length > 0 ? scopes.filter((one) => groups.includes(groupOf(one))) : ["*"]
  const before = groupsOf(apiKey)
  const wasDay = apiKey.expires_at && dayText(apiKey.expires_at * 1000)
  return {
    ...(!same([...groups].sort(), [...before].sort()) && { scopes: chosen }),
    ...(!same([...models].sort(), [...(apiKey.models ?? [])].sort()) && {
      models: models.length > 0 ? models : null,
    }),
    ...((values.expires_at || null) !== wasDay && { expires_at: expires }),
  }
}

/** The key's own stay a choice where they are not listed, or the list could not be loaded. */
const withOwn = (listed, apiKey) => [
  ...new Set([...listed, ...(apiKey?.scopes ?? []).filter((scope) => scope !== "*")]),
]

const groupsOf = ({ scopes }) =>
  scopes.includes("*") ? [] : [...new Set(scopes.map((scope) => groupOf(scope)))]

const Ticks = ({ legend, prefix, names, on, label }) => html`<fieldset>
  <legend>${legend}</legend>
  <div class="fields">
    ${names.map((name) => html`<${Check} key=${name} label=${label(name)} name=${`${prefix}${name}`} defaultChecked=${on.includes(name)} />`)}
  </div>
</fieldset>`

const useGroupName = () => {
  const { t } = useText()
  return (group) => (hasWords(`scope.${group}`) ? t(`scope.${group}`) : group)
}

/** What a key may do, with which models, and until when; without `apiKey` for a new one. */
export const AccessFields = ({ apiKey, scopes, models }) => {
  const { t } = useText()
  const nameOf = useGroupName()
  const groups = [...new Set(withOwn(scopes, apiKey).map(groupOf))]
  // an adapter goes with its model
  const own = models.filter(({ parent }) => !parent).map(({ id }) => id)
  const names = [...new Set([...own, ...(apiKey?.models ?? [])])]
  const expires = apiKey?.expires_at ? dayText(apiKey.expires_at * 1000) : undefined
  return html`
    <${Field} label=${t("key.expires")} hint=${t("key.expires.hint")} name="expires_at" type="date" defaultValue=${expires} />
    <details open=${Boolean(apiKey?.models || (apiKey && groupsOf(apiKey).length > 0))}>
      <summary>${t("key.access")}</summary>
      <p class="hint">${t("key.access.hint")}</p>
      <${Ticks} legend=${t("key.scopes")} prefix="scope:" names=${groups} on=${apiKey ? groupsOf(apiKey) : []} label=${nameOf} />
      <${Ticks} legend=${t("models")} prefix="model:" names=${names} on=${apiKey?.models ?? []} label=${(name) => name} />
    </details>`
}

/** The same for a card, as text; nothing where a key may do everything. */
export const AccessFacts = ({ apiKey }) => {
  const { t } = useText()
  const nameOf = useGroupName()
  const groups = groupsOf(apiKey)
  return html`${groups.length > 0 && html`<p>${t("key.scopes")}: ${groups.map(nameOf).join(", ")}</p>`}
    ${apiKey.models && html`<p>${t("models")}: ${apiKey.models.join(", ")}</p>`}`
}
