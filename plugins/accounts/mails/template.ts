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

/** Amounts in rupiah, as they are read. */
export interface LowBalance {
  readonly balance: string
  readonly threshold: string
}

/** The templates of one language. */
export interface MailTemplates {
  verify(links: MailLinks, url: string): MailContent
  /** Somebody signed up with an address that has a verified account. */
  registered(links: MailLinks): MailContent
  reset(links: MailLinks, url: string): MailContent
  /** The password was changed with the link of a `reset` mail. */
  changed(links: MailLinks): MailContent
  /** Sent to the new address, which the owner asked for. */
  email(links: MailLinks, url: string): MailContent
  /** Sent to the old address, once the new one is confirmed. */
  emailChanged(links: MailLinks, address: string): MailContent
  deleted(links: MailLinks): MailContent
  lowBalance(links: MailLinks, amounts: LowBalance): MailContent
}
