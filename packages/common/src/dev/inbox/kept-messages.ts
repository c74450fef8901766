import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Message } from './inbox-messages.ts'

export type KeptMessages = {
  loaded: Message[]
  /** Saves after a short delay, so that one write covers many mails. */
  save(messages: Message[]): void
  flush(): Promise<void>
}

/** Delay of a write: a load test sends thousands of mails a second, and kill -9 loses this much. */
const SAVE_AFTER_MS = 100

/** Keeps the mails in one file, replaced as a whole and never half written; a broken file is an empty inbox. */
export async function keepMessages(file: string): Promise<KeptMessages> {
  const loaded = parseMessages(await readFile(file, 'utf8').catch(() => ''))
  let unsaved: Message[] | undefined
  let writing: Promise<void> | undefined
  let saveNow = new AbortController()
  let hasFailed = false

  async function writeAll(): Promise<void> {
    while (unsaved) {
      await sleep(SAVE_AFTER_MS, undefined, { signal: saveNow.signal }).catch(() => {})
      const content = JSON.stringify(unsaved)
      unsaved = undefined
      try {
        await mkdir(dirname(file), { recursive: true })
        // Readable only by the owner, because it holds sign-in links.
        await writeFile(`${file}.next`, content, { mode: 0o600 })
        await rename(`${file}.next`, file)
      } catch (error) {
        if (!hasFailed) process.stderr.write(`The inbox keeps mails in memory only: ${(error as Error).message}\n`)
        hasFailed = true
      }
    }
    writing = undefined
  }
  return {
    loaded,
    save(messages) {
      unsaved = messages
      writing ??= writeAll()
    },
    async flush() {
      saveNow.abort()
      await writing
      saveNow = new AbortController()
    },
  }
}

function parseMessages(text: string): Message[] {
  try {
    const messages: unknown = JSON.parse(text)
    return Array.isArray(messages) && messages.every(isMessage) ? messages : []
  } catch {
    return []
  }
}

const TEXTS = ['receivedAt', 'from', 'subject', 'text', 'html', 'source']
const LISTS = ['to', 'links', 'attachments']

function isMessage(value: unknown): value is Message {
  const message = (value ?? {}) as Record<string, unknown>
  const hasTexts = TEXTS.every((name) => typeof message[name] === 'string')
  return hasTexts && LISTS.every((name) => Array.isArray(message[name])) && Number.isInteger(message.id)
}
