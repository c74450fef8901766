// The root's `pnpm demo`: a user's requests, with real input, to the running dev services. Every step checks its
// answer, and the first surprise prints both sides and exits with 1. Steps: demo/. `--clip FILE` writes its clip.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { typedPath } from '../process/typed-path.ts'
import { walkThroughAuth } from './demo/demo-auth.ts'
import { makeClip, walkThroughMedia } from './demo/demo-media.ts'
import { commandLineOf, dataRoot } from './dev-settings.ts'
import { describeElsewhere } from './elsewhere.ts'
import { type Addresses, findRunning } from './running.ts'

const START = 'start it with npx -y pnpm@12 dev in another terminal'
const data = dataRoot(process.env)

const print = (line: string) => process.stdout.write(`${line}\n`)
const report = (step: string, detail: string) => print(`  ${step ? '✓' : ' '} ${step.padEnd(28)} ${detail}`)

try {
  if (process.argv[2] === '--clip') await writeClip(process.argv[3])
  else await walkThroughAll()
} catch (error) {
  print(`  ✗ ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

/** `demo --clip FILE`: a clip to try uploads with. */
async function writeClip(file: string | undefined): Promise<void> {
  if (!file) throw new Error('--clip needs the name of the file, as in clip.mp4.')
  await makeClip(typedPath(file))
  print(`${file} is a clip of 3 s with sound.`)
}

async function walkThroughAll(): Promise<void> {
  const walks = await chooseWalks()
  await requireAnswers(walks.flatMap(({ needs }) => needs))
  for (const { title, walk } of walks) {
    print(`\n${title}`)
    await walk()
  }
  print('\nEverything worked.')
}

type Need = { name: string; url: string }
type Walk = { title: string; needs: Need[]; walk: () => Promise<void> }

/** Chooses the walks of the running services: `dev` inside a service starts only that one. */
async function chooseWalks(): Promise<Walk[]> {
  const [auth, media] = await Promise.all([findAddresses('auth'), findAddresses('media')])
  const walks: Walk[] = []
  if (auth?.inboxUrl) {
    const { url: authUrl, inboxUrl } = auth
    const commandLine = commandLineOf('auth', process.env)
    const needs = [
      { name: 'auth', url: `${authUrl}/health` },
      { name: 'the inbox', url: `${inboxUrl}/api/messages` },
    ]
    walks.push({
      title: `auth  ${authUrl}`,
      needs,
      walk: () => walkThroughAuth({ authUrl, inboxUrl, commandLine, report }),
    })
  }
  if (media) {
    const { url: mediaUrl } = media
    walks.push({
      title: `media  ${mediaUrl}`,
      needs: [{ name: 'media', url: `${mediaUrl}/health` }],
      walk: async () => walkThroughMedia({ mediaUrl, token: await readMediaToken(), report }),
    })
  }
  if (auth && !auth.inboxUrl) print('auth is left out: AUTH_SMTP_HOST receives its mail, which the demo cannot read.')
  if (walks.length === 0) {
    const elsewhere = (await describeElsewhere('auth', data)) || (await describeElsewhere('media', data))
    throw new Error(`No service runs on the data in ${data}${elsewhere ? `.${elsewhere}` : `: ${START}.`}`)
  }
  return walks
}

async function findAddresses(name: string): Promise<Addresses | undefined> {
  const running = await findRunning(join(data, name))
  if (running && !running.addresses)
    throw new Error(`${name} is still starting: try again when dev prints its addresses.`)
  return running?.addresses
}

async function requireAnswers(needs: Need[]): Promise<void> {
  for (const { name, url } of needs) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined)
    await answer?.body?.cancel()
    if (!answer) throw new Error(`${name} does not answer at ${url}: stop it, and ${START}.`)
  }
}

async function readMediaToken(): Promise<string> {
  if (process.env.MEDIA_TOKEN) return process.env.MEDIA_TOKEN
  const file = join(data, 'media/dev-token')
  const token = await readFile(file, 'utf8').catch(() => '')
  if (!token) throw new Error(`No API token: set MEDIA_TOKEN, or let \`npx -y pnpm@12 dev\` write ${file}`)
  return token.trim()
}
