// What the root's `pnpm demo` runs against the running dev services: the things a user does, with real input.
// The one rule: every step checks what it got; the first surprise ends it with exit code 1 and both sides printed.
// The steps: demo/demo-auth.ts and demo/demo-media.ts.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { walkThroughAuth } from './demo/demo-auth.ts'
import { walkThroughMedia } from './demo/demo-media.ts'

const root = join(import.meta.dirname, '../../../..')
// Where the same settings made `dev` put them.
const authUrl = urlAt('AUTH_PORT', 8081)
const mediaUrl = urlAt('MEDIA_PORT', 8082)
const inboxUrl = urlAt('INBOX_WEB_PORT', 8025)

const print = (line: string) => process.stdout.write(`${line}\n`)
const report = (step: string, detail: string) => print(`  ✓ ${step.padEnd(28)} ${detail}`)

try {
  const walks = chooseWalks()
  await requireAnswers(walks.flatMap(({ needs }) => needs))
  for (const { title, walk } of walks) {
    print(`\n${title}`)
    await walk()
  }
  print('\nEverything worked.')
} catch (error) {
  print(`  ✗ ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

type Need = { name: string; url: string }
type Walk = { title: string; needs: Need[]; walk: () => Promise<void> }

/** A service that was deleted from the repository is left out. */
function chooseWalks(): Walk[] {
  const isPresent = (name: string) => existsSync(join(root, 'services', name, 'package.json'))
  const walks: Walk[] = []
  if (isPresent('auth')) {
    const needs = [
      { name: 'auth', url: `${authUrl}/health` },
      { name: 'the inbox', url: `${inboxUrl}/api/messages` },
    ]
    walks.push({ title: `auth  ${authUrl}`, needs, walk: () => walkThroughAuth({ authUrl, inboxUrl, report }) })
  }
  if (isPresent('media')) {
    walks.push({
      title: `media  ${mediaUrl}`,
      needs: [{ name: 'media', url: `${mediaUrl}/health` }],
      walk: async () => walkThroughMedia({ root, mediaUrl, token: await readMediaToken(), report }),
    })
  }
  return walks
}

async function requireAnswers(needs: Need[]): Promise<void> {
  for (const { name, url } of needs) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined)
    await answer?.body?.cancel()
    if (!answer) throw new Error(`${name} does not answer at ${url}: start everything first with npx -y pnpm@12 dev`)
  }
}

async function readMediaToken(): Promise<string> {
  if (process.env.MEDIA_TOKEN) return process.env.MEDIA_TOKEN
  const file = join(resolve(process.env.DEV_DATA_DIR || join(root, '.data')), 'media/dev-token')
  const token = await readFile(file, 'utf8').catch(() => '')
  if (!token) throw new Error(`No API token: set MEDIA_TOKEN, or let \`npx -y pnpm@12 dev\` write ${file}`)
  return token.trim()
}

function urlAt(portVariable: string, defaultPort: number): string {
  return `http://127.0.0.1:${process.env[portVariable] || defaultPort}`
}
