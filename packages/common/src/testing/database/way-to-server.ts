// A proxy to a changeable server, whose connections can go silent without closing, like a lost route.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export async function startWay(serverUrl: string) {
  let target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  const silences = new Set<() => () => void>()
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    const endBoth = () => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', endBoth)
    }
    near.pipe(far).pipe(near)
    silences.add(() => {
      near.unpipe(far).pause().off('close', endBoth)
      far.unpipe(near).pause().off('close', endBoth)
      return endBoth
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(serverUrl)
  url.port = String((server.address() as AddressInfo).port)
  url.searchParams.delete('host') // a socket would bypass the proxy
  return {
    url: url.href,
    /** Sets the server of new connections. */
    leadTo: (next: { url: string }) => {
      target = new URL(next.url)
    },
    /**
     * Silences open connections without closing them; new ones work. Returns a function that closes the silent ones.
     */
    silenceOpen: () => {
      const ends = [...silences].map((silence) => silence())
      silences.clear()
      return () => {
        for (const end of ends) end()
      }
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
