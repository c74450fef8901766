import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below what systems hand out for connections, and above what services use. */
const [FIRST, LAST] = [15_000, 28_000]

/**
 * A port of 127.0.0.1 for a program that cannot take whichever one is free. It is this process's own until its end: no connection
 * is given it, and the same port of another loopback address is held as a lock against other tests, also of another run.
 */
export async function reservePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    const lock = await listenOn('127.0.0.2', port)
    const tried = lock && (await listenOn('127.0.0.1', port))
    await tried?.close()
    if (tried) return port
    await lock?.close()
  }
}

/** Undefined where it is taken. */
async function listenOn(host: string, port: number): Promise<{ close(): Promise<void> } | undefined> {
  const server = createServer().unref().listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    throw error
  }
  return {
    close: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}
