import type { Deployment, Mail } from "../../../core/index.ts"
import type { AccountTable } from "../tables.ts"
import type { Locale } from "./locale.ts"
import type { MailPurpose } from "./mail-tokens.ts"
import { renderMail } from "./render.ts"
import type { LowBalance, MailContent, MailLinks, MailTemplates } from "./template.ts"
import { english } from "./templates-en.ts"
import { indonesian } from "./templates-id.ts"

const templates: Readonly<Record<Locale, MailTemplates>> = { en: english, id: indonesian }

type Addressee = Pick<AccountTable, "email" | "locale">

const mailLinksOf = ({ baseUrl }: Deployment): MailLinks => ({
  site: baseUrl,
  signIn: `${baseUrl}/dashboard#sign-in`,
  forgot: `${baseUrl}/dashboard#forgot`,
})

/** The token is in the fragment, which browsers don't send: it gets into no log and no Referer. */
const linkOf = ({ baseUrl }: Deployment, purpose: MailPurpose, token: string) =>
  `${baseUrl}/dashboard#${purpose}=${token}`

const write = (
  to: Addressee,
  deployment: Deployment,
  fill: (templates: MailTemplates, links: MailLinks) => MailContent,
): Mail => renderMail(to.email, fill(templates[to.locale], mailLinksOf(deployment)), to.locale)

export const tokenMail = (
  to: Addressee,
  deployment: Deployment,
  purpose: MailPurpose,
  token: string,
): Mail =>
  write(to, deployment, (templates, links) =>
    templates[purpose](links, linkOf(deployment, purpose, token)),
  )

export const registeredMail = (to: Addressee, deployment: Deployment): Mail =>
  write(to, deployment, (templates, links) => templates.registered(links))

export const changedMail = (to: Addressee, deployment: Deployment): Mail =>
  write(to, deployment, (templates, links) => templates.changed(links))

export const emailChangedMail = (to: Addressee, deployment: Deployment, address: string): Mail =>
  write(to, deployment, (templates, links) => templates.emailChanged(links, address))

export const lowBalanceMail = (to: Addressee, deployment: Deployment, amounts: LowBalance): Mail =>
  write(to, deployment, (templates, links) => templates.lowBalance(links, amounts))

export const deletedMail = (to: Addressee, deployment: Deployment): Mail =>
  write(to, deployment, (templates, links) => templates.deleted(links))
