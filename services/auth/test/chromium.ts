// A headless Chromium, by its own protocol: what is needed of it is a page, its scripts and a virtual security key.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Debian's; where there is none its tests are skipped, but not where one is named. */
const CHROMIUM = process.env.CHROMIUM_PATH || '/usr/bin/chromium'
export const hasChromium = Boolean(process.env.CHROMIUM_PATH) || existsSync(CHROMIUM)

const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface Page {
  /** A command of the DevTools protocol. */
  send(method: string, params?: object): Promise<Record<string, unknown>>
  open(url: string): Promise<void>
  /** The value of an expression, awaited; throws what it throws. */
  evaluate<Result>(expression: string): Promise<Result>
}

export async function startChromium(): Promise<{ page: Page; close(): Promise<void> }> {
  const profile = await mkdtemp(join(tmpdir(), 'auth-chromium-'))
  const args = [...QUIET, '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank']
  const process = spawn(CHROMIUM, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const socket = new WebSocket(await debuggerAddress(process))
  await once(socket, 'open')
  return {
    page: await openPage(socket),
    async close() {
      socket.close()
      process.kill()
      await once(process, 'exit')
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}

async function debuggerAddress({ stderr }: ChildProcess): Promise<string> {
  if (!stderr) throw new Error('no standard error')
  for await (const line of createInterface(stderr)) {
    const [, address] = /^DevTools listening on (ws:\S+)$/.exec(line) ?? []
    if (address) {
      stderr.resume()
      return address
    }
  }
  throw new Error('Chromium ended before it said where it listens')
}

async function openPage(socket: WebSocket): Promise<Page> {
  const waiting = new Map<number, (answer: { result: Record<string, unknown>; error?: { message: string } }) => void>()
  const loaded = new Set<() => void>()
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data))
    waiting.get(message.id)?.(message)
    if (message.method === 'Page.loadEventFired') for (const tell of loaded) tell()
  })
  let ids = 0
  let sessionId: string | undefined
  const send = async (method: string, params: object = {}) => {
    const id = ++ids
    const { promise, resolve } = Promise.withResolvers<{
      result: Record<string, unknown>
      error?: { message: string }
    }>()
    waiting.set(id, resolve)
    socket.send(JSON.stringify({ id, method, params, sessionId }))
    const { result, error } = await promise
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
  const attached = await send('Target.attachToTarget', { targetId, flatten: true })
  sessionId = attached.sessionId as string
  await send('Page.enable')
  return {
    send,
    async open(url) {
      const { promise, resolve } = Promise.withResolvers<void>()
      loaded.add(resolve)
      await send('Page.navigate', { url })
      await promise
      loaded.delete(resolve)
    },
    async evaluate<Result>(expression: string) {
      const { result, exceptionDetails } = (await send('Runtime.evaluate', {
        expression,
        awaitPromise: true,
        returnByValue: true,
        userGesture: true,
      })) as { result: { value: Result }; exceptionDetails?: { exception?: { description?: string } } }
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'the page threw')
      return result.value
    },
  }
}
