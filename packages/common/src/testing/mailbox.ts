import { findFreePort } from '../dev/dev-ports.ts'
import { createMessages, type Message, type MessageFilter } from '../dev/inbox/inbox-messages.ts'
import { type SmtpStep, startSmtpSink } from '../dev/inbox/smtp-sink.ts'
import { PATIENCE_MS } from './patience.ts'

export type { Message } from '../dev/inbox/inbox-messages.ts'

export type Mailbox = {
  host: string
  port: number
  /** The newest mail to this address, waiting for it if need be. `after`: one that came later than this. */
  waitFor(to: string, options?: Omit<MessageFilter, 'to'> & { timeoutMs?: number }): Promise<Message>
  /** Newest first. */
  messages(filter?: MessageFilter): Message[]
  clear(): void
  /** The mail server is down: nothing listens on the port, until `accept`. */
  refuse(): Promise<void>
  /** Every mail gets this reply code: 4xx means try later, 5xx means never. */
  answer(code: number, at?: SmtpStep): Promise<void>
  /** Connections open and nothing is ever said. */
  hang(): Promise<void>
  /** Connections break, by default when the mail was sent and its sender waits to be told that it was taken. */
  drop(at?: SmtpStep): Promise<void>
  /** Back to normal, on the same port. */
  accept(): Promise<void>
  close(): Promise<void>
}

/** A real SMTP server on a free port for one test file, and what it received. */
export async function startMailbox(): Promise<Mailbox> {
  const messages = createMessages()
  // Not a port of the system's choice: while the server is down, the system might give it to another socket.
  const sink = await startSmtpSink({ host: '127.0.0.1', port: await findFreePort() }, messages.add)
  return {
    host: sink.host,
    port: sink.port,
    waitFor: (to, { timeoutMs = PATIENCE_MS, ...filter } = {}) => messages.waitFor({ ...filter, to }, timeoutMs),
    messages: messages.list,
    clear: messages.clear,
    refuse: () => sink.behave({ kind: 'refuse' }),
    answer: (code, at = 'recipient') => sink.behave({ kind: 'answer', code, at }),
    hang: () => sink.behave({ kind: 'hang' }),
    drop: (at = 'message') => sink.behave({ kind: 'drop', at }),
    accept: () => sink.behave({ kind: 'accept' }),
    close: sink.close,
  }
}
