import { useText } from "../app.js"
import { html } from "../html.js"
import { Check, Field } from "../parts/field.js"

const limitNames = ["rpm", "rpd", "concurrency", "monthly_cap_idr", "body_mb"]
const hints = { monthly_cap_idr: "limit.cap.hint", body_mb: "limit.body.hint" }

/** Converts the form's texts to the API's `limits`; an empty one is left out. */
export const limitsOf = (values) =>
  Object.fromEntries(
    limitNames
      .filter((name) => values[`limits.${name}`]?.trim())
      .map((name) => [name, Number(values[`limits.${name}`])]),
  )

export const NameField = ({ value }) => {
  const { t } = useText()
  return html`<${Field} label=${t("key.name")} hint=${value === undefined ? t("key.name.hint") : undefined} name="name" autocomplete="off" required defaultValue=${value} />`
}

export const TestCheck = () => {
  const { t } = useText()
  return html`<${Check} label=${t("key.test")} hint=${t("key.test.hint")} name="test" />`
}

/** Without `limits` it is the form of a new key: an empty field means the default. */
export const LimitFields = ({ limits }) => {
  const { t } = useText()
  return html`<div class="fields">
    ${limitNames.map(
      (name) => html`<${Field}
        key=${name}
        label=${t(`limit.${name}`)}
        hint=${hints[name] && t(hints[name])}
        name=${`limits.${name}`}
        type="number"
        step="any"
        inputmode="decimal"
        placeholder=${limits ? undefined : t("limit.default")}
        defaultValue=${limits?.[name]}
      />`,
    )}
  </div>`
}
