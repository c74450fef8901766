import { findFreePort } from '../dev/dev-ports.ts'
import { createMessages, type Message, type MessageFilter } from '../dev/inbox/inbox-messages.ts'
import { type SmtpStep, startSmtpSink } from '../dev/inbox/smtp-sink.ts'
import { PATIENCE_MS } from './patience.ts'

export type { Message } from '../dev/inbox/inbox-messages.ts'

export type Mailbox = {
  host: string
  port: number
  /** Waits for a mail to this address and resolves to the newest. `after`: a later mail than this. */
  waitFor(to: string, options?: Omit<MessageFilter, 'to'> & { timeoutMs?: number }): Promise<Message>
  messages(filter?: MessageFilter): Message[]
  clear(): void
  /** Stops listening until `accept`. */
  refuse(): Promise<void>
  /** Answers every mail with this reply code: 4xx is temporary, 5xx permanent. */
  answer(code: number, at?: SmtpStep): Promise<void>
  /** Opens connections and stays silent, or falls silent at recipients alone whose address ends with this domain. */
  hang(domain?: string): Promise<void>
  /** Connections that wait for the answer to a recipient of that domain. */
  hanging(): number
  /** Breaks connections, by default after DATA, when the sender waits for the reply. */
  drop(at?: SmtpStep): Promise<void>
  /** Accepts mails again, on the same port. */
  accept(): Promise<void>
  close(): Promise<void>
}

/** Starts an SMTP server on a free port, with the mails it received. */
export async function startMailbox(): Promise<Mailbox> {
  const messages = createMessages()
  // Not an ephemeral port, which another socket could get while the server is down.
  const sink = await startSmtpSink({ host: '127.0.0.1', port: await findFreePort() }, messages.add)
  return {
    host: sink.host,
    port: sink.port,
    waitFor: (to, { timeoutMs = PATIENCE_MS, ...filter } = {}) => messages.waitFor({ ...filter, to }, timeoutMs),
    messages: messages.list,
    clear: messages.clear,
    refuse: () => sink.behave({ kind: 'refuse' }),
    answer: (code, at = 'recipient') => sink.behave({ kind: 'answer', code, at }),
    hang: (domain) => sink.behave({ kind: 'hang', ...(domain && { domain }) }),
    hanging: sink.hanging,
    drop: (at = 'message') => sink.behave({ kind: 'drop', at }),
    accept: () => sink.behave({ kind: 'accept' }),
    close: sink.close,
  }
}
