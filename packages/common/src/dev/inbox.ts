// The development mailbox: takes every mail over SMTP, keeps the newest, over a restart too, shows them on a web page.
// The one rule: it listens on this machine only, because it holds sign-in links.
// SMTP and its failure switches: inbox/smtp-sink.ts. What is kept: inbox-messages.ts, kept-messages.ts. Pages and JSON: inbox-web.ts.
import type { AddressInfo } from 'node:net'
import { requireFreePorts } from './dev-ports.ts'
import { PORTS } from './dev-settings.ts'
import { createMessages } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'
import { keepMessages } from './inbox/kept-messages.ts'
import { startSmtpSink } from './inbox/smtp-sink.ts'

export type InboxOptions = {
  /** 0 takes a free one. */
  smtpPort: number
  webPort: number
  /** Keeps the mails over a restart; in memory only when absent. */
  file?: string
}

export type Inbox = {
  smtpPort: number
  webUrl: string
  close(): Promise<void>
}

const HOST = '127.0.0.1'

/** Throws one sentence per port in use, naming INBOX_SMTP_PORT or INBOX_WEB_PORT. */
export async function startInbox({ smtpPort, webPort, file }: InboxOptions): Promise<Inbox> {
  const wanted = [
    { port: smtpPort, variable: PORTS.inboxSmtp.variable },
    { port: webPort, variable: PORTS.inboxWeb.variable },
  ]
  await requireFreePorts(wanted.filter(({ port }) => port !== 0))
  const keeper = file ? await keepMessages(file) : undefined
  const messages = createMessages(keeper?.loaded, keeper?.save)
  const sink = await startSmtpSink({ host: HOST, port: smtpPort }, messages.add)
  const web = await createInboxWeb(messages, `smtp://${HOST}:${sink.port}`)
  try {
    await web.listen({ host: HOST, port: webPort })
  } catch (error) {
    await sink.close()
    throw error
  }
  return {
    smtpPort: sink.port,
    webUrl: `http://${HOST}:${(web.server.address() as AddressInfo).port}`,
    async close() {
      await Promise.all([web.close(), sink.close()])
      await keeper?.flush()
    },
  }
}
