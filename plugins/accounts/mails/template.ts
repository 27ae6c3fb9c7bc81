/** The content of a mail, in one language. */
export interface MailContent {
  readonly subject: string
  readonly greeting: string
  readonly paragraphs: readonly string[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Shown smaller, below the action. */
  readonly notes: readonly string[]
}

/** URLs that mails link to. */
export interface MailLinks {
  /** Public URL of the deployment. */
  readonly site: string
  readonly signIn: string
  readonly forgot: string
}

/** The templates of one language. */
export interface MailTemplates {
  verify(links: MailLinks, url: string): MailContent
  /** Somebody signed up with an address that has a verified account. */
  registered(links: MailLinks): MailContent
  reset(links: MailLinks, url: string): MailContent
  /** The password was changed with the link of a `reset` mail. */
  changed(links: MailLinks): MailContent
}
