import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port to listen on, and the variable that changes it. */
export type WantedPort = { port: number; variable: string }

export const portInUseMessage = ({ port, variable }: WantedPort): string =>
  `Port ${port} is in use. Set ${variable} to another one.`

export async function requireFreePorts(wanted: WantedPort[]): Promise<void> {
  const taken = await findTakenPorts(wanted)
  if (taken.length > 0) throw new Error(taken.map(portInUseMessage).join('\n'))
}

export async function findTakenPorts<Wanted extends { port: number }>(wanted: Wanted[]): Promise<Wanted[]> {
  const taken: Wanted[] = []
  for (const one of wanted) {
    if (!(await isPortFree(one.port))) taken.push(one)
  }
  return taken
}

/**
 * Suggests settings such as `AUTH_PORT=8083 MEDIA_PORT=8084`: the next free port above each, different from `others`.
 */
export async function suggestPorts(instead: WantedPort[], others: WantedPort[] = []): Promise<string> {
  const avoided = new Set([...instead, ...others].map(({ port }) => port))
  const settings: string[] = []
  for (const { port, variable } of instead) {
    let next = port
    do next = next === 65_535 ? 1_025 : next + 1
    while (avoided.has(next) || !(await isPortFree(next)))
    avoided.add(next)
    settings.push(`${variable}=${next}`)
  }
  return settings.join(' ')
}

/** Range below the ephemeral ports: those begin at 32768 on Linux, at 49152 elsewhere. */
const CHOSEN_PORTS = { from: 15_000, below: 32_768 }

/** Parts of the range: concurrent processes mostly have neighbouring pids, and each takes ports of its own part. */
const PARTS = 32

const givenOut = new Set<number>()

/**
 * Finds a free port that no connection, no later call and no neighbouring process takes, even while its server
 * restarts.
 */
export async function findFreePort(): Promise<number> {
  const size = Math.floor((CHOSEN_PORTS.below - CHOSEN_PORTS.from) / PARTS)
  const first = CHOSEN_PORTS.from + (process.pid % PARTS) * size
  while (true) {
    const port = randomInt(first, first + size)
    if (givenOut.has(port)) continue
    givenOut.add(port)
    if (await isPortFree(port)) return port
  }
}

async function isPortFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return false
    throw error
  }
  server.close()
  await once(server, 'close')
  return true
}
