import PostalMime, { type Address } from 'postal-mime'
import type { Envelope } from './smtp-sink.ts'

export type Message = {
  /** Number in the order of arrival, from 1. */
  id: number
  receivedAt: string
  /** Sender as in the header: `Name <address>`. */
  from: string
  /** Recipients of the envelope; headers need not name them. */
  to: string[]
  subject: string
  /** Plain part; empty if the mail has none. */
  text: string
  html: string
  /** URLs in the HTML and the text, in order, without duplicates. */
  links: string[]
  attachments: { name: string; type: string; bytes: number }[]
  source: string
}

/** Matches mails that arrived after `after` and whose subject contains `subject`. */
export type MessageFilter = { to?: string; subject?: string; after?: Pick<Message, 'id'> }

export type Messages = {
  add(raw: Buffer, envelope: Envelope): Promise<void>
  list(filter?: MessageFilter): Message[]
  find(id: number): Message | undefined
  /** Resolves to the newest match, now or within the time; then throws with a list of the mails. */
  waitFor(filter: MessageFilter, timeoutMs: number): Promise<Message>
  clear(): void
}

/** Bounds that keep a load test from filling memory and file. */
const KEPT_MESSAGES = 500
const KEPT_SOURCE_BYTES = 16 * 1024 * 1024

/** `onChange` receives all kept messages after each change. */
export function createMessages(loaded: Message[] = [], onChange: (kept: Message[]) => void = () => {}): Messages {
  let kept = loaded
  let lastId = Math.max(0, ...loaded.map(({ id }) => id))
  const arrivals = new EventTarget()

  const list = (filter: MessageFilter = {}) => kept.filter((message) => fits(message, filter))
  return {
    async add(raw, envelope) {
      const parsed = await parseMessage(raw, envelope)
      kept = withinBounds([{ id: ++lastId, ...parsed }, ...kept])
      onChange(kept)
      arrivals.dispatchEvent(new Event('arrival'))
    },
    list,
    find: (id) => kept.find((message) => message.id === id),
    waitFor(filter, timeoutMs) {
      const { promise, resolve, reject } = Promise.withResolvers<Message>()
      const settled = new AbortController()
      const look = () => {
        const [found] = list(filter)
        if (found) resolve(found)
      }
      arrivals.addEventListener('arrival', look, { signal: settled.signal })
      const timer = setTimeout(() => reject(new Error(describeAbsence(filter, timeoutMs, kept))), timeoutMs)
      look()
      return promise.finally(() => {
        settled.abort()
        clearTimeout(timer)
      })
    },
    clear() {
      kept = []
      onChange(kept)
    },
  }
}

/** Drops the oldest; the newest stays whatever its size. */
function withinBounds(messages: Message[]): Message[] {
  let bytes = 0
  const tooOld = messages.findIndex(({ source }, index) => {
    bytes += source.length
    return index > 0 && (index >= KEPT_MESSAGES || bytes > KEPT_SOURCE_BYTES)
  })
  return tooOld === -1 ? messages : messages.slice(0, tooOld)
}

function fits(message: Message, { to, subject, after }: MessageFilter): boolean {
  if (to !== undefined && !message.to.some((address) => address.toLowerCase() === to.toLowerCase())) return false
  if (subject !== undefined && !message.subject.includes(subject)) return false
  return after === undefined || message.id > after.id
}

function describeAbsence({ to, subject, after }: MessageFilter, timeoutMs: number, kept: Message[]): string {
  const wanted = [to && `to ${to}`, subject && `with subject "${subject}"`, after && `after message ${after.id}`]
  const present = kept.map((message) => `  ${message.id}: to ${message.to.join(', ')}: ${message.subject}`)
  return `No mail ${wanted.filter(Boolean).join(' ')} within ${timeoutMs} ms. The inbox holds:\n${present.join('\n') || '  nothing'}`
}

async function parseMessage(raw: Buffer, envelope: Envelope): Promise<Omit<Message, 'id'>> {
  const email = await PostalMime.parse(raw)
  const text = email.text?.trim() ?? ''
  const html = email.html ?? ''
  return {
    receivedAt: new Date().toISOString(),
    from: describeAddress(email.from) || envelope.from,
    to: envelope.to,
    subject: email.subject ?? '',
    text,
    html,
    links: findLinks(html, text),
    attachments: email.attachments.map(({ filename, mimeType, content }) => ({
      name: filename ?? 'unnamed',
      type: mimeType,
      bytes: typeof content === 'string' ? content.length : content.byteLength,
    })),
    source: raw.toString('utf8'),
  }
}

function describeAddress(address: Address | undefined): string {
  if (!address?.address) return address?.name ?? ''
  return address.name ? `${address.name} <${address.address}>` : address.address
}

function findLinks(html: string, text: string): string[] {
  const targets = [...html.matchAll(/\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')/gi)].map(([, double, single]) =>
    decodeEntities(double ?? single ?? ''),
  )
  return [...new Set([...targets, ...(text.match(URL_IN_TEXT) ?? [])])]
}

/** Matches a URL without the punctuation that ends its sentence. */
export const URL_IN_TEXT = /https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]]/g

function decodeEntities(value: string): string {
  return value
    .replace(/&#x([0-9a-f]+);/gi, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/&#(\d+);/g, (_, decimal: string) => String.fromCodePoint(Number(decimal)))
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}
