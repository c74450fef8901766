// Starts what an image starts as an engine would with --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Image } from './build-root.ts'

export interface Container {
  /** Of the first process inside, as this machine numbers it. */
  pid: number
  log(): string
  /** Sends the image's STOPSIGNAL and answers the exit code and how long it took. */
  stop(): Promise<{ code: number | null; milliseconds: number }>
}

export interface Mount {
  from: string
  to: string
}

/** The image's command, or another one in its place. */
export async function startContainer(
  image: Image,
  env: Record<string, string>,
  mounts: Mount[] = [],
  command = image.command,
): Promise<Container> {
  const child = spawnIn(image, env, mounts, [...image.entrypoint, ...command])
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (log += chunk))
  const pid = await readPid(child)
  return {
    pid,
    log: () => log,
    stop: async () => {
      const started = performance.now()
      if (child.exitCode === null && child.signalCode === null) {
        const exit = once(child, 'exit')
        process.kill(pid, image.stopSignal as NodeJS.Signals)
        const late = setTimeout(() => process.kill(pid, 'SIGKILL'), 15_000)
        await exit
        clearTimeout(late)
      }
      return { code: child.exitCode, milliseconds: performance.now() - started }
    },
  }
}

/** Runs a command to its end, without the entrypoint, as HEALTHCHECK and `docker exec` do. */
export async function runInside(
  image: Image,
  env: Record<string, string>,
  mounts: Mount[],
  command: string[],
): Promise<{ code: number | null; output: string; errors: string; milliseconds: number }> {
  const started = performance.now()
  const child = spawnIn(image, env, mounts, command)
  let output = ''
  let errors = ''
  child.stdout?.on('data', (chunk) => (output += chunk))
  child.stderr?.on('data', (chunk) => (errors += chunk))
  const [code] = await once(child, 'close')
  return { code, output, errors, milliseconds: performance.now() - started }
}

function spawnIn(image: Image, env: Record<string, string>, mounts: Mount[], command: string[]): ChildProcess {
  const [uid = '', gid = ''] = image.user.split(':')
  const args = [
    ...['--ro-bind', image.root, '/', '--dev', '/dev', '--proc', '/proc', '--perms', '1777', '--tmpfs', '/tmp'],
    ...mounts.flatMap(({ from, to }) => ['--bind', from, to]),
    ...['--unshare-pid', '--as-pid-1', '--die-with-parent', '--cap-add', 'ALL', '--clearenv', '--info-fd', '3'],
    ...Object.entries({ ...image.env, ...env }).flatMap((pair) => ['--setenv', ...pair]),
    ...['--chdir', image.workdir, '--', 'setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'],
    ...['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--', ...command],
  ]
  return spawn('bwrap', args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
}

function readPid(child: ChildProcess): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let text = ''
  child.stdio[3]?.on('data', (chunk) => {
    text += chunk
    const found = /"child-pid":\s*(\d+)/.exec(text)?.[1]
    if (found) resolve(Number(found))
  })
  child.once('error', reject)
  child.once('close', (code) => reject(new Error(`bubblewrap ended with ${code} before the container started`)))
  return promise
}

/** What the kernel says of a process: `Uid`, `CapEff`, `NoNewPrivs`, `VmRSS`, `VmHWM`. */
export function processFacts(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/:\s*/) as [string, string]))
}

/** The entry point may have started what serves. */
function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [pid, ...children]
}

export function residentMegabytes(pid: number): number {
  const kilobytes = withChildren(pid).map((each) => Number.parseInt(processFacts(each).VmRSS ?? '0', 10))
  return Math.round(kilobytes.reduce((sum, each) => sum + each, 0) / 1000)
}

/** Of all its threads and of what it has waited for, since it began. A tick of the kernel is 10 ms. */
export function cpuMilliseconds(pid: number): number {
  const ticks = withChildren(pid).flatMap((each) =>
    readFileSync(`/proc/${each}/stat`, 'utf8').replace(/^.*\)/, '').trim().split(' ').slice(11, 15).map(Number),
  )
  return ticks.reduce((sum, each) => sum + each, 0) * 10
}
