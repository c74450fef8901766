// A fake yt-dlp: the address decides its behaviour, and its output has the form of the real one.
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A program in a directory of its own. `version` as `--version` prints it. */
export async function installFakeYtdlp({ version = '2026.11.01' }: { version?: string } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'fake-ytdlp-'))
  const path = join(directory, 'yt-dlp')
  const self = fileURLToPath(import.meta.url)
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${self}' ${version} "$@"\n`)
  await chmod(path, 0o755)
  return { path, directory, remove: () => rm(directory, { recursive: true }) }
}

/** The address of a page about which the program does this. */
export const pageThat = (does: Does, parameters: Record<string, string> = {}) =>
  `https://elsewhere.example/${does}?${new URLSearchParams(parameters)}`

type Does = 'says' | 'fails' | 'hangs' | 'floods' | 'dies' | 'reaches' | 'tells'

async function main([version = '', ...args]: string[]): Promise<void> {
  const say = (text: string) => void process.stdout.write(`${text}\n`)
  if (args.includes('--version')) return say(version)
  const { pathname, searchParams } = new URL(args.at(-1) ?? '')
  const told = (name: string) => searchParams.get(name) ?? ''
  const deeds: Record<Does, () => unknown> = {
    says: () => say(told('answer')),
    fails: () => {
      process.stderr.write(`ERROR: ${told('words')}\n`)
      process.exitCode = 1
    },
    hangs: () => {
      spawn('sleep', [told('seconds')], { stdio: 'ignore' })
      setInterval(() => {}, 1000)
    },
    floods: () => {
      const more = () => process.stdout.write('x'.repeat(1 << 16), more)
      more()
    },
    dies: () => process.kill(process.pid, 'SIGSEGV'),
    reaches: async () => {
      const proxy = new URL(args[args.indexOf('--proxy') + 1] ?? '')
      const ways = [reachPlain(proxy, told('target')), reachTunnel(proxy, told('target')), reachDirect(told('target'))]
      say(JSON.stringify(await Promise.all(ways)))
    },
    tells: async () => {
      const at = args.indexOf('--cookies')
      const cookies = at < 0 ? undefined : await readFile(args[at + 1] ?? '', 'utf8')
      if (at >= 0) await writeFile(args[at + 1] ?? '', 'written back')
      say(JSON.stringify({ args, cookies, environment: process.env }))
    },
  }
  await deeds[pathname.slice(1) as Does]()
}

const authorizationFor = ({ username, password }: URL) => ({
  'proxy-authorization': `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
})

function reachPlain(proxy: URL, target: string) {
  return new Promise((resolve) => {
    const options = {
      host: proxy.hostname,
      port: proxy.port,
      path: `http://${target}/`,
      headers: authorizationFor(proxy),
    }
    request(options, (answer) => resolve(`plain ${answer.resume().statusCode}`))
      .on('error', () => resolve('plain failed'))
      .end()
  })
}

function reachTunnel(proxy: URL, target: string) {
  return new Promise((resolve) => {
    const options = { method: 'CONNECT', host: proxy.hostname, port: proxy.port, path: target }
    request({ ...options, headers: authorizationFor(proxy) })
      .on('connect', (answer, socket) => {
        socket.destroy()
        resolve(`tunnel ${answer.statusCode}`)
      })
      .on('error', () => resolve('tunnel failed'))
      .end()
  })
}

function reachDirect(target: string) {
  const [host = '', port = ''] = target.split(':')
  return new Promise((resolve) => {
    const socket = connect(Number(port), host)
    socket.on('error', () => resolve('direct failed'))
    socket.on('connect', () => {
      socket.destroy()
      resolve('direct reached')
    })
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
