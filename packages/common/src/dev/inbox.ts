// The development inbox: accepts every mail by SMTP, keeps the newest over a restart, and shows them on a web page. It
// listens on this machine only, because mails hold sign-in links. SMTP and its failures: inbox/smtp-sink.ts. Storage:
// inbox-messages.ts, kept-messages.ts. Pages and JSON: inbox-web.ts.
import type { AddressInfo } from 'node:net'
import { requireFreePorts } from './dev-ports.ts'
import { PORTS } from './dev-settings.ts'
import { createMessages } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'
import { keepMessages } from './inbox/kept-messages.ts'
import { startSmtpSink } from './inbox/smtp-sink.ts'

export type InboxOptions = {
  /** Port, or 0 for a free one. */
  smtpPort: number
  webPort: number
  /** File that keeps the mails over a restart; without it they stay in memory. */
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
