// The development mailbox: takes every mail over SMTP, keeps the newest, over a restart too, shows them on a web page.
// The one rule: it listens on this machine only, because it holds sign-in links.
// SMTP and its failure switches: inbox/smtp-sink.ts. What is kept: inbox-messages.ts, kept-messages.ts. Pages and JSON: inbox-web.ts.
import type { AddressInfo } from 'node:net'
import { requireFreePorts } from './dev-ports.ts'
import { PORTS } from './dev-settings.ts'
import { createMessages, type Message, type MessageFilter } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'
import { keepMessages } from './inbox/kept-messages.ts'
import { type SmtpBehaviour, startSmtpSink } from './inbox/smtp-sink.ts'

export type InboxOptions = {
  /** 0 takes a free one; default 1025. */
  smtpPort?: number
  /** 0 takes a free one; default 8025. */
  webPort?: number
  host?: string
  /** Keeps the mails over a restart; in memory only when absent. */
  file?: string
}

export type Inbox = {
  smtpHost: string
  smtpPort: number
  smtpUrl: string
  webUrl: string
  /** Newest first. */
  messages(filter?: MessageFilter): Message[]
  waitFor(filter: MessageFilter, timeoutMs?: number): Promise<Message>
  /** For tests: a mail server that is down, refuses or hangs. */
  behave(behaviour: SmtpBehaviour): Promise<void>
  clear(): void
  close(): Promise<void>
}

/** Throws one sentence per port in use, naming INBOX_SMTP_PORT or INBOX_WEB_PORT. */
export async function startInbox(options: InboxOptions = {}): Promise<Inbox> {
  const { smtpPort = PORTS.inboxSmtp.usual, webPort = PORTS.inboxWeb.usual, host = '127.0.0.1', file } = options
  const wanted = [
    { port: smtpPort, variable: PORTS.inboxSmtp.variable },
    { port: webPort, variable: PORTS.inboxWeb.variable },
  ]
  await requireFreePorts(
    wanted.filter(({ port }) => port !== 0),
    host,
  )

  const keeper = file ? await keepMessages(file) : undefined
  const messages = createMessages(keeper?.loaded, keeper?.save)
  const sink = await startSmtpSink({ host, port: smtpPort }, messages.add)
  const smtpUrl = `smtp://${sink.host}:${sink.port}`
  const web = await createInboxWeb(messages, smtpUrl)
  try {
    await web.listen({ host, port: webPort })
  } catch (error) {
    await sink.close()
    throw error
  }
  return {
    smtpHost: sink.host,
    smtpPort: sink.port,
    smtpUrl,
    webUrl: `http://${host}:${(web.server.address() as AddressInfo).port}`,
    messages: messages.list,
    waitFor: messages.waitFor,
    behave: sink.behave,
    clear: messages.clear,
    async close() {
      await Promise.all([web.close(), sink.close()])
      await keeper?.flush()
    },
  }
}
